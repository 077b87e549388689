// A gateway in a few lines: files at one path, another server's answers at the others.
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "rondo/exec/runtime.hpp"
#include "rondo/http/client.hpp"
#include "rondo/http/files.hpp"
#include "rondo/http/proxy.hpp"
#include "rondo/http/server.hpp"

namespace {

using namespace std::chrono_literals;
namespace http = rondo::http;
using boost::asio::ip::tcp;

tcp::endpoint const free_port{boost::asio::ip::make_address("127.0.0.1"), 0};

rondo::task<void> upstream(http::exchange* x) { (void)co_await x->send("from upstream\n"); }

// What a server answers to GET.
rondo::task<std::string> get(http::client* client, tcp::endpoint at, std::string target) {
    auto call = co_await client->connect(at);
    if (!call) co_return "no connection";
    call->head().line("GET", target);
    call->head().add("host", "localhost");
    auto const sent = co_await call->finish();
    auto const head = co_await call->read_head();
    if (!sent || !head) co_return "no answer";
    std::string body;
    for (;;) {
        auto const piece = co_await call->read();
        if (!piece || piece->empty()) break;
        body += *piece;
    }
    co_return body;
}

}  // namespace

int main() {
    std::string name = (std::filesystem::temp_directory_path() / "rondo-front-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) return EXIT_FAILURE;
    std::filesystem::path const folder = name;
    std::ofstream{folder / "hello.txt"} << "from a file\n";

    rondo::runtime rt;
    http::client client{rt};
    http::server behind{rt, {.listen = {{free_port}}}, upstream};
    if (!behind.start()) return EXIT_FAILURE;

    // [front]
    auto site = http::files::open(folder, {.prefix = "/files"});
    http::proxy rest{client, {.backends = {{behind.addresses()[0]}}}};
    http::server front{rt, {.listen = {{free_port}}}, [&](http::exchange* x) {
                           bool const file = x->head().path.starts_with("/files/");
                           return file ? site->answer(x) : rest.answer(x);
                       }};
    // [/front]
    if (!front.start()) return EXIT_FAILURE;

    tcp::endpoint const at = front.addresses()[0];
    auto in_worker = [&](std::string const& target) {
        auto asked = rt.spawn_pinned(get(&client, at, target));
        return asked.blocking_join().value_or("stopped");
    };
    std::string const file = in_worker("/files/hello.txt");
    std::string const forwarded = in_worker("/anything");
    std::printf("/files/hello.txt: %s/anything: %s", file.c_str(), forwarded.c_str());
    front.blocking_stop(1s);
    behind.blocking_stop(1s);
    std::filesystem::remove_all(folder);
    return file == "from a file\n" && forwarded == "from upstream\n" ? EXIT_SUCCESS : EXIT_FAILURE;
}
