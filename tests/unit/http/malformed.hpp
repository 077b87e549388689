// malformed.hpp: requests that must be refused, and with what. The table is used three times: for
// the scan alone, over sockets, and cut into two at every byte.
#pragma once

#include <string>
#include <vector>

namespace rondo::test {

struct malformed_request {
    char const* what;
    std::string bytes;
    int status;
    bool in_body = false;  // the head is well-formed; the handler sees it, but never a whole body
};

inline std::string repeated(std::string const& text, std::size_t times) {
    std::string all;
    for (std::size_t i = 0; i < times; ++i) all += text;
    return all;
}

inline std::vector<malformed_request> malformed_starts() {
    using std::string_literals::operator""s;
    std::string const host = "Host: a\r\n\r\n";
    return {
        {"lower case method", "get / HTTP/1.1\r\n" + host, 400},
        {"method with a digit", "G3T / HTTP/1.1\r\n" + host, 400},
        {"method with a colon", "GET: / HTTP/1.1\r\n" + host, 400},
        {"method of 33 letters", repeated("A", 33) + " / HTTP/1.1\r\n" + host, 400},
        {"no method", " / HTTP/1.1\r\n" + host, 400},
        {"tunnel through us", "CONNECT a:80 HTTP/1.1\r\n" + host, 501},
        {"two spaces after the method", "GET  / HTTP/1.1\r\n" + host, 400},
        {"tab after the method", "GET\t/ HTTP/1.1\r\n" + host, 400},
        {"no target", "GET HTTP/1.1\r\n" + host, 400},
        {"two spaces after the target", "GET /  HTTP/1.1\r\n" + host, 400},
        {"target without a slash", "GET a HTTP/1.1\r\n" + host, 400},
        {"asterisk for GET", "GET * HTTP/1.1\r\n" + host, 400},
        {"fragment", "GET /a#b HTTP/1.1\r\n" + host, 400},
        {"byte above ASCII in the target", "GET /\xc3\xa9 HTTP/1.1\r\n" + host, 400},
        {"NUL in the target", "GET /\0 HTTP/1.1\r\n"s + host, 400},
        {"control character in the target", "GET /\x01 HTTP/1.1\r\n" + host, 400},
        {"delete character in the target", "GET /\x7f HTTP/1.1\r\n" + host, 400},
        {"escape of NUL", "GET /%00 HTTP/1.1\r\n" + host, 400},
        {"escape that is cut off", "GET /%2 HTTP/1.1\r\n" + host, 400},
        {"escape without digits", "GET /%zz HTTP/1.1\r\n" + host, 400},
        {"dots above the root", "GET /../a HTTP/1.1\r\n" + host, 400},
        {"dots above the root, later", "GET /a/../../b HTTP/1.1\r\n" + host, 400},
        {"dots above the root, at the end", "GET /a/../.. HTTP/1.1\r\n" + host, 400},
        {"dots above the root, escaped", "GET /%2e%2E/a HTTP/1.1\r\n" + host, 400},
        {"dots above the root, one escaped", "GET /.%2e/a HTTP/1.1\r\n" + host, 400},
        {"dots above the root by escaped slashes", "GET /a%2f..%2f../b HTTP/1.1\r\n" + host, 400},
        {"dots above the root by backslashes", "GET /a\\..\\..\\b HTTP/1.1\r\n" + host, 400},
        {"dots above the root if only the escaped slash separates",
         "GET /a%5Cb%2F..%2F..%2Fetc HTTP/1.1\r\n" + host, 400},
        {"dots above the root if only the escaped slash separates, and no backslash",
         "GET /a\\b%2F..%2F..%2Fetc HTTP/1.1\r\n" + host, 400},
        {"dots above the root if only the backslash separates",
         "GET /a%2Fb\\..\\..\\etc HTTP/1.1\r\n" + host, 400},
        {"dots above the root if only the escaped backslash separates",
         "GET /a\\b%5c..%5C%2e%2e%5C HTTP/1.1\r\n" + host, 400},
        {"dots above the root in a full target", "GET http://a/../b HTTP/1.1\r\n" + host, 400},
        {"scheme that is not ours", "GET ftp://a/ HTTP/1.1\r\n" + host, 400},
        {"full target without a host", "GET http:/// HTTP/1.1\r\n" + host, 400},
        {"full target with a user", "GET http://u@a/ HTTP/1.1\r\n" + host, 400},
        {"full target for another host", "GET http://b/ HTTP/1.1\r\n" + host, 400},
        {"target that is too long", "GET /" + repeated("a", 9000) + " HTTP/1.1\r\n" + host, 414},
        {"no version", "GET /\r\n" + host, 400},
        {"version in lower case", "GET / http/1.1\r\n" + host, 400},
        {"version with two digits", "GET / HTTP/1.11\r\n" + host, 400},
        {"version without a dot", "GET / HTTP/11\r\n" + host, 400},
        {"version 2.0", "GET / HTTP/2.0\r\n" + host, 505},
        {"version 1.2", "GET / HTTP/1.2\r\n" + host, 505},
        {"version 0.9", "GET / HTTP/0.9\r\n" + host, 505},
        {"space after the version", "GET / HTTP/1.1 \r\n" + host, 400},
        {"the beginning of TLS", "\x16\x03\x01\x02\x01\x01\xfc\x03\x03 something\r\n\r\n", 400},
        {"two empty lines first", "\r\n\r\nGET / HTTP/1.1\r\n" + host, 400},
    };
}

inline std::vector<malformed_request> malformed_fields() {
    using std::string_literals::operator""s;
    std::string const get = "GET / HTTP/1.1\r\n";
    std::string const ok = get + "Host: a\r\n";
    return {
        {"no host", get + "\r\n", 400},
        {"two hosts", ok + "Host: a\r\n\r\n", 400},
        {"empty host", get + "Host:\r\n\r\n", 400},
        {"host with a slash", get + "Host: a/b\r\n\r\n", 400},
        {"host with a user", get + "Host: u@a\r\n\r\n", 400},
        {"host with a space", get + "Host: a b\r\n\r\n", 400},
        {"hosts in a list", get + "Host: a, b\r\n\r\n", 400},
        {"host with a port of letters", get + "Host: a:http\r\n\r\n", 400},
        {"host with an open bracket", get + "Host: [::1\r\n\r\n", 400},
        {"line ends with LF", "GET / HTTP/1.1\nHost: a\n\n", 400},
        {"field ends with LF", get + "Host: a\nX: b\r\n\r\n", 400},
        {"empty line of LF", ok + "\n", 400},
        {"CR in a value", ok + "X: a\rb\r\n\r\n", 400},
        {"CR before the empty line", ok + "X: a\r\r\n\r\n", 400},
        {"CR in a name", ok + "X\r: a\r\n\r\n", 400},
        {"NUL in a value", ok + "X: a\0b\r\n\r\n"s, 400},
        {"control character in a value", ok + "X: a\x02\r\n\r\n", 400},
        {"delete character in a value", ok + "X: a\x7f\r\n\r\n", 400},
        {"folded field", ok + "X: a\r\n b\r\n\r\n", 400},
        {"folded by a tab", ok + "X: a\r\n\tb\r\n\r\n", 400},
        {"folded before the first field", get + " X: a\r\nHost: a\r\n\r\n", 400},
        {"space before the colon", ok + "X : a\r\n\r\n", 400},
        {"tab before the colon", ok + "X\t: a\r\n\r\n", 400},
        {"field without a colon", ok + "X\r\n\r\n", 400},
        {"field without a name", ok + ": a\r\n\r\n", 400},
        {"name with a space", ok + "X Y: a\r\n\r\n", 400},
        {"name with a byte above ASCII", ok + "X\xe9: a\r\n\r\n", 400},
        {"name with NUL", ok + "X\0: a\r\n\r\n"s, 400},
        {"name with a bracket", ok + "X(: a\r\n\r\n", 400},
        {"too many fields", ok + repeated("X: a\r\n", 100) + "\r\n", 431},
        {"field that is too large", ok + "X: " + repeated("a", 33000) + "\r\n\r\n", 431},
        {"many large fields", ok + repeated("X: " + repeated("a", 1000) + "\r\n", 40) + "\r\n",
         431},
        {"unknown expectation", ok + "Expect: 200-ok\r\n\r\n", 417},
    };
}

inline std::vector<malformed_request> malformed_framings() {
    std::string const post = "POST / HTTP/1.1\r\nHost: a\r\n";
    std::string const chunked = "Transfer-Encoding: chunked\r\n";
    std::string const body = "\r\n0\r\n\r\n";
    return {
        {"length and coding", post + "Content-Length: 5\r\n" + chunked + body, 400},
        {"coding and length", post + chunked + "Content-Length: 5\r\n" + body, 400},
        {"coding and length 0", post + chunked + "Content-Length: 0\r\n" + body, 400},
        {"two lengths", post + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400},
        {"two equal lengths", post + "Content-Length: 1\r\nContent-Length: 1\r\n\r\na", 400},
        {"two equal lengths of 0", post + "Content-Length: 0\r\nContent-Length: 0\r\n\r\n", 400},
        {"list of lengths", post + "Content-Length: 4, 4\r\n\r\nabcd", 400},
        {"length with a plus", post + "Content-Length: +4\r\n\r\nabcd", 400},
        {"length with a minus", post + "Content-Length: -4\r\n\r\nabcd", 400},
        {"length with a leading 0", post + "Content-Length: 004\r\n\r\nabcd", 400},
        {"length in hexadecimal", post + "Content-Length: 0x4\r\n\r\nabcd", 400},
        {"length with a point", post + "Content-Length: 4.0\r\n\r\nabcd", 400},
        {"length with a space in it", post + "Content-Length: 4 4\r\n\r\nabcd", 400},
        {"length without digits", post + "Content-Length:\r\n\r\n", 400},
        {"length of 19 digits", post + "Content-Length: 9223372036854775808\r\n\r\n", 400},
        {"length beyond 64 bits", post + "Content-Length: 18446744073709551617\r\n\r\na", 400},
        {"folded length", post + "Content-Length: 1\r\n 0\r\n\r\n0123456789", 400},
        {"length with an underscore", post + "Content_Length: 4\r\n\r\nabcd", 400},
        {"coding with an underscore", post + "Transfer_Encoding: chunked\r\n" + body, 400},
        {"coding that nobody knows", post + "Transfer-Encoding: xchunked\r\n" + body, 400},
        {"coding gzip alone", post + "Transfer-Encoding: gzip\r\n" + body, 400},
        {"coding identity", post + "Transfer-Encoding: identity\r\n" + body, 400},
        {"gzip, then chunked", post + "Transfer-Encoding: gzip, chunked\r\n" + body, 501},
        {"chunked, then identity", post + "Transfer-Encoding: chunked, identity\r\n" + body, 400},
        {"chunked twice in a list", post + "Transfer-Encoding: chunked, chunked\r\n" + body, 400},
        {"chunked twice", post + chunked + chunked + body, 400},
        {"chunked, then gzip, as two fields", post + chunked + "Transfer-Encoding: gzip\r\n" + body,
         400},
        {"chunked and a comma", post + "Transfer-Encoding: chunked,\r\n" + body, 400},
        {"a comma and chunked", post + "Transfer-Encoding: ,chunked\r\n" + body, 400},
        {"chunked in quotes", post + "Transfer-Encoding: \"chunked\"\r\n" + body, 400},
        {"chunked with a parameter", post + "Transfer-Encoding: chunked;a=b\r\n" + body, 400},
        {"coding without a value", post + "Transfer-Encoding:\r\n" + body, 400},
        {"coding after a vertical tab", post + "Transfer-Encoding: \vchunked\r\n" + body, 400},
        {"coding before the colon", post + "Transfer-Encoding : chunked\r\n" + body, 400},
        {"coding in HTTP/1.0", "POST / HTTP/1.0\r\nHost: a\r\n" + chunked + body, 400},
    };
}

inline std::vector<malformed_request> malformed_chunks() {
    std::string const post = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    std::string const end = "0\r\n\r\n";
    std::vector<malformed_request> all{
        {"no size", post + "\r\n" + end, 400},
        {"size that is no number", post + "x\r\n" + end, 400},
        {"size with a sign", post + "+4\r\nabcd\r\n" + end, 400},
        {"size with 0x", post + "0x4\r\nabcd\r\n" + end, 400},
        {"size after a space", post + " 4\r\nabcd\r\n" + end, 400},
        {"size before a space", post + "4 \r\nabcd\r\n" + end, 400},
        {"size of 16 digits", post + "0000000000000004\r\nabcd\r\n" + end, 400},
        {"size beyond 64 bits", post + "10000000000000004\r\nabcd\r\n" + end, 400},
        {"size that ends with LF", post + "4\nabcd\r\n" + end, 400},
        {"size that ends with CR", post + "4\rabcd\r\n" + end, 400},
        {"data that ends with LF", post + "4\r\nabcd\n" + end, 400},
        {"data that does not end", post + "4\r\nabcde\r\n" + end, 400},
        {"data without an end", post + "4\r\nabcd" + end, 400},
        {"extension with NUL", post + std::string{"4;a\0\r\nabcd\r\n", 12} + end, 400},
        {"extension with LF", post + "4;a\nb\r\nabcd\r\n" + end, 400},
        {"extension that is too long", post + "4;" + repeated("a", 300) + "\r\nabcd\r\n" + end,
         400},
        {"many long extensions",
         post + repeated("1;" + repeated("a", 250) + "\r\nx\r\n", 100) + end, 400},
        {"trailer with a length", post + "0\r\nContent-Length: 3\r\n\r\n", 400},
        {"trailer with a coding", post + "0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {"trailer that is folded", post + "0\r\nX: a\r\n b\r\n\r\n", 400},
        {"trailer that ends with LF", post + "0\r\nX: a\n\r\n", 400},
        {"trailer without a colon", post + "0\r\nX\r\n\r\n", 400},
        {"trailer that is too long", post + "0\r\nX: " + repeated("a", 5000) + "\r\n\r\n", 400},
    };
    for (auto& m : all) m.in_body = true;
    return all;
}

inline std::vector<malformed_request> malformed_requests() {
    std::vector<malformed_request> all = malformed_starts();
    for (auto const& more : {malformed_fields(), malformed_framings(), malformed_chunks()}) {
        all.insert(all.end(), more.begin(), more.end());
    }
    return all;
}

}  // namespace rondo::test
