#include "rondo/http/detail/http_date.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace rondo::http::detail {

namespace {

constexpr std::string_view days = "SunMonTueWedThuFriSat";
constexpr std::string_view months = "JanFebMarAprMayJunJulAugSepOctNovDec";
constexpr std::int64_t seconds_of_day = 86'400;
constexpr std::int64_t last_second = 253'402'300'799;  // of the year 9999

struct moment {
    int year = 0;
    unsigned month = 0;
    unsigned day = 0;
    int hour = 0;
    int minute = 0;
    int second = 0;
};

// Reads from the front of a text; the first thing that does not fit makes all of it fail.
class date_reader {
  public:
    explicit date_reader(std::string_view text) noexcept : rest_(text) {}

    date_reader& literal(std::string_view expected) noexcept {
        ok_ = ok_ && rest_.starts_with(expected);
        skip(expected.size());
        return *this;
    }
    int number(std::size_t digits) noexcept {
        int value = 0;
        for (std::size_t i = 0; i < digits; ++i) {
            char const c = i < rest_.size() ? rest_[i] : '\0';
            ok_ = ok_ && c >= '0' && c <= '9';
            value = value * 10 + (c - '0');
        }
        skip(digits);
        return ok_ ? value : 0;
    }
    unsigned month() noexcept {
        std::size_t at = months.size();
        for (std::size_t i = 0; i < months.size(); i += 3) {
            if (rest_.starts_with(months.substr(i, 3))) at = i;
        }
        ok_ = ok_ && at < months.size();
        skip(3);
        return static_cast<unsigned>(at / 3 + 1);
    }
    void time(moment& m) noexcept {
        m.hour = number(2);
        m.minute = literal(":").number(2);
        m.second = literal(":").number(2);
    }
    bool next_is(char c) const noexcept { return rest_.starts_with(c); }
    bool ended() const noexcept { return ok_ && rest_.empty(); }

  private:
    void skip(std::size_t n) noexcept { rest_.remove_prefix(std::min(n, rest_.size())); }

    std::string_view rest_;
    bool ok_ = true;
};

std::optional<std::int64_t> seconds_of(moment const& m) noexcept {
    std::chrono::year_month_day const date{std::chrono::year{m.year}, std::chrono::month{m.month},
                                           std::chrono::day{m.day}};
    // A leap second is taken for the one after it.
    if (!date.ok() || m.hour > 23 || m.minute > 59 || m.second > 60) return std::nullopt;
    std::int64_t const day = std::chrono::sys_days{date}.time_since_epoch().count();
    return day * seconds_of_day + m.hour * 3600 + m.minute * 60 + m.second;
}

std::optional<moment> read_usual(std::string_view after_day) noexcept {
    date_reader r{after_day};
    moment m;
    m.day = static_cast<unsigned>(r.literal(", ").number(2));
    m.month = r.literal(" ").month();
    m.year = r.literal(" ").number(4);
    r.literal(" ").time(m);
    return r.literal(" GMT").ended() ? std::optional{m} : std::nullopt;
}

std::optional<moment> read_rfc850(std::string_view after_day) noexcept {
    date_reader r{after_day};
    moment m;
    m.day = static_cast<unsigned>(r.literal(", ").number(2));
    m.month = r.literal("-").month();
    int const year = r.literal("-").number(2);
    m.year = year + (year < 70 ? 2000 : 1900);
    r.literal(" ").time(m);
    return r.literal(" GMT").ended() ? std::optional{m} : std::nullopt;
}

std::optional<moment> read_asctime(std::string_view after_day) noexcept {
    date_reader r{after_day};
    moment m;
    m.month = r.literal(" ").month();
    r.literal(" ");
    bool const one_digit = r.next_is(' ');
    if (one_digit) r.literal(" ");
    m.day = static_cast<unsigned>(r.number(one_digit ? 1 : 2));
    r.literal(" ").time(m);
    m.year = r.literal(" ").number(4);
    return r.ended() ? std::optional{m} : std::nullopt;
}

bool begins_with_a_day(std::string_view text) noexcept {
    if (text.size() < 3) return false;
    std::size_t const at = days.find(text.substr(0, 3));
    return at != std::string_view::npos && at % 3 == 0;
}

}  // namespace

http_date::http_date(std::int64_t seconds) noexcept : text_() {
    seconds = std::clamp<std::int64_t>(seconds, 0, last_second);
    auto const day = std::chrono::sys_days{std::chrono::days{seconds / seconds_of_day}};
    std::chrono::year_month_day const date{day};
    auto const of_day = static_cast<unsigned>(seconds % seconds_of_day);
    std::size_t at = 0;
    auto const put = [&](std::string_view s) {
        std::ranges::copy(s, text_.begin() + static_cast<std::ptrdiff_t>(at));
        at += s.size();
    };
    auto const put_number = [&](unsigned n, std::size_t digits) {
        for (std::size_t i = digits; i-- > 0; n /= 10) {
            text_[at + i] = static_cast<char>('0' + n % 10);
        }
        at += digits;
    };
    put(days.substr(std::chrono::weekday{day}.c_encoding() * 3, 3));
    put(", ");
    put_number(static_cast<unsigned>(date.day()), 2);
    put(" ");
    put(months.substr((static_cast<unsigned>(date.month()) - 1) * 3, 3));
    put(" ");
    put_number(static_cast<unsigned>(static_cast<int>(date.year())), 4);
    put(" ");
    put_number(of_day / 3600, 2);
    put(":");
    put_number(of_day / 60 % 60, 2);
    put(":");
    put_number(of_day % 60, 2);
    put(" GMT");
}

std::optional<std::int64_t> parse_http_date(std::string_view text) noexcept {
    if (!begins_with_a_day(text)) return std::nullopt;
    std::size_t const comma = text.find(',');
    std::optional<moment> m;
    if (comma == 3) {
        m = read_usual(text.substr(3));
    } else if (comma != std::string_view::npos) {
        m = read_rfc850(text.substr(comma));
    } else {
        m = read_asctime(text.substr(3));
    }
    return m ? seconds_of(*m) : std::nullopt;
}

}  // namespace rondo::http::detail
