#include "config_admission.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "rondo/fair/config.hpp"

namespace rondo::gateway {

namespace {

using http::admission_settings;

constexpr auto policies = std::to_array<std::pair<std::string_view, fair::backpressure>>({
    {"evict_longest", fair::backpressure::evict_longest},
    {"drop_oldest", fair::backpressure::drop_oldest},
    {"drop_newest", fair::backpressure::drop_newest},
    {"reject", fair::backpressure::reject},
});
constexpr auto costs = std::to_array<std::pair<std::string_view, http::cost_by>>({
    {"fixed", http::cost_by::fixed},
    {"bytes", http::cost_by::bytes},
    {"measured", http::cost_by::measured},
});
constexpr std::int64_t most_requests = 1'000'000;
constexpr std::int64_t heaviest = fair::max_weight;

template <class Value, std::size_t N>
void read_choice(config_reader& r, toml::table const& t, std::string_view key,
                 std::array<std::pair<std::string_view, Value>, N> const& all, Value& to) {
    auto const* const n = t.get(key);
    if (n == nullptr) return;
    std::array<std::string_view, N> words;
    std::ranges::transform(all, words.begin(), [](auto const& choice) { return choice.first; });
    auto const chosen = r.word(*n, key, words);
    if (!chosen) return;
    to = std::ranges::find(all, *chosen, &std::pair<std::string_view, Value>::first)->second;
}

template <class Number>
void read_number(config_reader& r, toml::table const& t, std::string_view key, std::int64_t least,
                 std::int64_t most, Number& to) {
    auto const* const n = t.get(key);
    if (n == nullptr) return;
    if (auto const read = r.number(*n, key, least, most)) to = static_cast<Number>(*read);
}

void read_duration(config_reader& r, toml::table const& t, std::string_view key,
                   clock::duration& to) {
    auto const* const n = t.get(key);
    if (n == nullptr) return;
    if (auto const read = r.duration(*n, key)) to = *read;
}

bool in_field_name(char c) {
    bool const letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return letter || (c >= '0' && c <= '9') || std::string_view{"!#$%&'*+-.^_`|~"}.contains(c);
}

void read_deadline(config_reader& r, toml::node const& n, admission_settings& s) {
    auto const* const t = r.table(n, "deadline");
    if (t == nullptr) return;
    r.check_keys(*t, "[admission.deadline]");
    if (auto const* const header = t->get("header")) {
        s.deadline_header = r.text(*header, "header").value_or("");
        if (!std::ranges::all_of(s.deadline_header, in_field_name)) {
            r.report(*header, fmt::format("'header' is \"{}\"", s.deadline_header),
                     "it is the name of a field: \"X-Request-Timeout\"");
        }
    }
    read_duration(r, *t, "default", s.deadline_default);
    read_duration(r, *t, "max", s.deadline_max);
    read_duration(r, *t, "reserve", s.deadline_reserve);
    if (s.deadline_default != clock::duration::max() && s.deadline_default > s.deadline_max) {
        r.report(*t->get("default"), "'default' is more than 'max'", "make it less");
    }
    for (auto const& [limit, key] :
         {std::pair{s.deadline_max, "max"}, std::pair{s.deadline_default, "default"}}) {
        if (limit == clock::duration::max() || s.deadline_reserve < limit) continue;
        r.report(*t->get("reserve"), fmt::format("'reserve' is not less than '{}'", key),
                 "a request that has to wait would be refused at once");
        break;
    }
}

void read_limits(config_reader& r, toml::table const& t, admission_settings& s) {
    r.check_keys(t, "[admission]");
    read_number(r, t, "max_in_flight", 1, most_requests, s.limits.max_in_flight);
    read_number(r, t, "max_in_flight_per_tenant", 1, most_requests,
                s.limits.max_in_flight_per_tenant);
    read_number(r, t, "max_queued", 0, most_requests, s.limits.max_queued);
    read_choice(r, t, "when_full", policies, s.limits.when_full);
    read_choice(r, t, "cost", costs, s.cost);
    read_number(r, t, "bytes_per_cost", 1, std::numeric_limits<std::uint32_t>::max(),
                s.bytes_per_cost);
    read_duration(r, t, "max_wait", s.limits.max_wait);
    if (auto const* const turns = t.get("turns")) {
        s.turns = r.boolean(*turns, "turns").value_or(true);
    }
    if (auto const* const d = t.get("deadline")) read_deadline(r, *d, s);
}

// A list of texts, each of which `parse` reads or says what is wrong with it.
template <class Parse, class To>
void read_parsed(config_reader& r, toml::node const& n, std::string_view key, Parse parse, To& to) {
    auto const* const list = r.filled_list(n, key);
    if (list == nullptr) return;
    to.clear();
    for (toml::node const& entry : *list) {
        auto const text = r.text(entry, key);
        if (!text) continue;
        auto parsed = parse(*text);
        if (parsed) {
            to.push_back(*std::move(parsed));
        } else {
            r.report(entry, fmt::format("'{}' has \"{}\"", key, *text), parsed.error());
        }
    }
}

void read_tenants(config_reader& r, toml::node const& n, admission_settings& s) {
    auto const* const t = r.table(n, "tenants");
    if (t == nullptr) return;
    r.check_keys(*t, "[tenants]");
    if (auto const* const key = t->get("key")) {
        read_parsed(r, *key, "key", http::parse_tenant_key, s.tenants.key);
    }
    if (auto const* const trusted = t->get("trusted")) {
        read_networks(r, *trusted, "trusted", s.tenants.trusted);
    }
    read_number(r, *t, "default_weight", 1, heaviest, s.default_weight);
    read_number(r, *t, "max_queued", 1, most_requests, s.limits.max_queued_per_tenant);
    read_duration(r, *t, "idle_time", s.idle_time);
    bool const by_header = std::ranges::any_of(s.tenants.key, [](auto const& parts) {
        return std::ranges::any_of(parts, [](http::tenant_part const& p) {
            return p.what == http::tenant_part::kind::header;
        });
    });
    if (by_header && s.tenants.trusted.empty()) {
        r.report(*t->get("key"), "nobody is trusted to set the header",
                 "name the peers that are: trusted = [\"10.0.0.0/8\"]");
    }
}

// Whether a request can show it, and not by showing nothing.
bool can_be_shown(std::string_view key) {
    constexpr std::string_view space = " \t";
    auto const is_control = [](unsigned char c) { return (c < ' ' && c != '\t') || c == 0x7f; };
    return !key.empty() && !space.contains(key.front()) && !space.contains(key.back()) &&
           std::ranges::none_of(key, is_control);
}

void read_tenant(config_reader& r, toml::table const& t, admission_settings& s) {
    r.check_keys(t, "[[tenant]]");
    auto const* const named = r.required(t, "[[tenant]]", "name");
    if (named == nullptr) return;
    std::string const name = http::tenant_name(r.text(*named, "name").value_or(""));
    bool const twice =
        std::ranges::any_of(s.weights, [&](auto const& w) { return w.first == name; });
    if (twice) r.report(*named, fmt::format("the tenant '{}' is there twice", name));
    std::uint32_t weight = s.default_weight;
    read_number(r, t, "weight", 1, heaviest, weight);
    s.weights.emplace_back(name, weight);
    if (auto const* const key = t.get("api_key")) {
        auto const secret = r.text(*key, "api_key");
        if (secret && !can_be_shown(*secret)) {
            r.report(
                *key, "'api_key' cannot be the value of a field",
                "it needs a character at least, no space at its ends, and no control character");
        } else if (secret && !s.tenants.api_keys.emplace(*secret, name).second) {
            r.report(*key, "this API key is that of a tenant above");
        }
    }
}

}  // namespace

void read_networks(config_reader& r, toml::node const& n, std::string_view key,
                   std::vector<http::network>& to) {
    read_parsed(r, n, key, http::parse_network, to);
}

void read_admission(config_reader& r, toml::table const& file, config& c) {
    admission_settings s;
    auto const* const admission = file.get("admission");
    auto const* const tenants = file.get("tenants");
    auto const* const tenant = file.get("tenant");
    if (admission == nullptr) {
        for (auto const* const n : {tenants, tenant}) {
            if (n == nullptr) continue;
            r.report(*n, "there are tenants, but no [admission]", "say how many requests may run");
        }
        return;
    }
    if (auto const* const t = r.table(*admission, "admission")) read_limits(r, *t, s);
    if (tenants != nullptr) read_tenants(r, *tenants, s);
    if (tenant != nullptr) {
        auto const* const list = tenant->as_array();
        bool const tables = list != nullptr &&
                            std::ranges::all_of(*list, [](auto const& e) { return e.is_table(); });
        if (!tables) {
            r.report(*tenant, "'tenant' is not a list of tables", "write [[tenant]]");
        } else {
            for (toml::node const& t : *list) read_tenant(r, *t.as_table(), s);
        }
    }
    c.admission = std::move(s);
}

}  // namespace rondo::gateway
