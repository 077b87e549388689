// chromium.hpp: a real browser without a window, told what to do through its debugging pipe.
//
// Messages are JSON with a zero byte behind each. A page is driven by evaluating in it; what waits,
// waits in the page.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "support/child_process.hpp"

namespace rondo::test {

class chromium {
  public:
    explicit chromium(std::string const& program) {
        int to[2];
        int from[2];
        if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) {
            throw std::runtime_error("pipe");
        }
        std::string const profile = "--user-data-dir=" + (scratch_.path() / "profile").string();
        pid_ = ::fork();
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            ::setpgid(0, 0);
            // First out of the way of 3 and 4, where it expects its pipes.
            int const in = ::fcntl(to[0], F_DUPFD, 10);
            int const out = ::fcntl(from[1], F_DUPFD, 10);
            ::dup2(in, 3);
            ::dup2(out, 4);
            int const nowhere = ::open("/dev/null", O_RDWR);
            ::dup2(nowhere, 1);
            ::dup2(nowhere, 2);
            ::execlp(program.c_str(), program.c_str(), "--headless=new", "--no-sandbox",
                     "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--remote-debugging-pipe", profile.c_str(), "about:blank", nullptr);
            ::_exit(127);
        }
        ::close(to[0]);
        ::close(from[1]);
        in_ = to[1];
        out_ = from[0];
    }
    chromium(chromium const&) = delete;
    chromium& operator=(chromium const&) = delete;
    ~chromium() {
        ::close(in_);
        ::kill(-pid_, SIGKILL);
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        ::close(out_);
    }

    void open(std::string const& url) {
        auto const target = call("Target.createTarget", {{"url", "about:blank"}});
        auto const attached =
            call("Target.attachToTarget", {{"targetId", target.at("targetId")}, {"flatten", true}});
        session_ = attached.at("sessionId").as_string();
        call("Page.enable", {});
        call("Page.navigate", {{"url", url}});
    }
    void look_like(int width, int height, bool phone, std::string_view scheme) {
        call("Emulation.setDeviceMetricsOverride",
             {{"width", width}, {"height", height}, {"deviceScaleFactor", 1}, {"mobile", phone}});
        boost::json::array const features{{{"name", "prefers-color-scheme"}, {"value", scheme}}};
        call("Emulation.setEmulatedMedia", {{"features", features}});
    }
    // What an expression of JavaScript gives.
    boost::json::value evaluate(std::string const& expression) {
        auto const said =
            call("Runtime.evaluate",
                 {{"expression", expression}, {"awaitPromise", true}, {"returnByValue", true}});
        if (said.contains("exceptionDetails")) {
            throw std::runtime_error(boost::json::serialize(said));
        }
        auto const& result = said.at("result").as_object();
        return result.contains("value") ? result.at("value") : boost::json::value{};
    }
    // Whether it becomes true within 20 s.
    bool becomes(std::string const& condition) {
        return evaluate(
                   "new Promise((done) => { const end = Date.now() + 20000; (function look() {"
                   "let is = false; try { is = !!(" +
                   condition +
                   "); } catch {} if (is || Date.now() > end) done(is);"
                   "else setTimeout(look, 50); })(); })")
            .as_bool();
    }
    void screenshot(std::filesystem::path const& file) {
        auto const shot =
            call("Page.captureScreenshot", {{"format", "png"}, {"captureBeyondViewport", true}});
        std::filesystem::create_directories(file.parent_path());
        std::ofstream{file, std::ios::binary} << decoded(shot.at("data").as_string());
    }

  private:
    boost::json::object call(std::string_view method, boost::json::object parameters) {
        boost::json::object message{
            {"id", ++last_}, {"method", method}, {"params", std::move(parameters)}};
        if (!session_.empty()) message["sessionId"] = session_;
        std::string const text = boost::json::serialize(message);
        if (::write(in_, text.c_str(), text.size() + 1) < 0) throw std::runtime_error("it is gone");
        for (;;) {
            auto const answer = boost::json::parse(next()).as_object();
            if (!answer.contains("id") || answer.at("id").as_int64() != last_) continue;
            if (answer.contains("error")) throw std::runtime_error(boost::json::serialize(answer));
            return answer.at("result").as_object();
        }
    }
    std::string next() {
        for (;;) {
            std::size_t const end = left_.find('\0');
            if (end != std::string::npos) {
                std::string message = left_.substr(0, end);
                left_.erase(0, end + 1);
                return message;
            }
            char block[65536];
            ssize_t const n = ::read(out_, block, sizeof block);
            if (n <= 0) throw std::runtime_error("the browser ended");
            left_.append(block, static_cast<std::size_t>(n));
        }
    }
    static std::string decoded(std::string_view base64) {
        std::string bytes;
        unsigned held = 0;
        int bits = 0;
        for (char const c : base64) {
            std::string_view const digits =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
            std::size_t const value = digits.find(c);
            if (value == std::string_view::npos) break;
            held = held << 6 | static_cast<unsigned>(value);
            bits += 6;
            if (bits >= 8) bytes += static_cast<char>(held >> (bits -= 8) & 0xff);
        }
        return bytes;
    }

    scratch_directory scratch_;
    pid_t pid_ = -1;
    int in_ = -1;
    int out_ = -1;
    std::int64_t last_ = 0;
    std::string session_;
    std::string left_;
};

}  // namespace rondo::test
