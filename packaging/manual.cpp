// Prints rondo.toml(5): what surrounds the keys stands here, the keys are those of the reader.
#include <cstdio>
#include <string>
#include <string_view>

#include "rondo/config.hpp"

namespace {

using rondo::gateway::key_info;

// As troff wants it: no line begins with a control character, marks of emphasis are dropped.
std::string plain(std::string_view text) {
    std::string out;
    for (char const c : text) {
        if (c == '*' || c == '`') continue;
        if (c == '\\' || c == '-') out += '\\';
        out += c;
    }
    return out;
}

void print(key_info const& k) {
    std::printf(".TP\n\\fB%s\\fR (%s)\n%s.", plain(k.name).c_str(), plain(k.value).c_str(),
                plain(k.meaning).c_str());
    if (k.fallback == "required") {
        std::printf(" Required.");
    } else if (!k.fallback.empty()) {
        std::printf(" Without it: %s.", plain(k.fallback).c_str());
    }
    std::printf("\n");
}

}  // namespace

int main() {
    std::printf(
        ".TH RONDO.TOML 5 \"\" \"rondo %s\"\n"
        ".SH NAME\nrondo.toml \\- configuration of the gateway rondo\n"
        ".SH DESCRIPTION\n"
        "A file in TOML. An address is host:port, [ipv6]:port or name:port. A duration is a number "
        "and one of ms, s, m, h. Paths of files are relative to the folder of the configuration. "
        "A key that is not listed here is an error; \\fBrondo check\\fR says which, and where.\n",
        RONDO_VERSION);
    std::string_view section;
    for (key_info const& k : rondo::gateway::keys()) {
        if (k.section != section) std::printf(".SH %s\n", plain(section = k.section).c_str());
        print(k);
    }
    std::printf(
        ".SH FILES\n/etc/rondo/rondo.toml\n"
        ".SH SEE ALSO\n\\fBrondo\\fR(1)\n");
}
