// A status as JSON, for the dashboard and for `rondo top`. The only file that compiles Boost.JSON.
#include <boost/json/src.hpp>
#include <cmath>

#include "status.hpp"

namespace rondo::gateway {

namespace {

namespace json = boost::json;

// What is shown has no use for more, and what is sent each second is shorter.
double rounded(double d) { return std::round(d * 1000) / 1000; }

json::value written(double d) { return rounded(d); }
json::value written(bool b) { return b; }
json::value written(std::uint64_t n) { return n; }
json::value written(std::uint32_t n) { return n; }
json::value written(std::string const& s) { return json::string{s}; }
template <class T>
json::value written(std::vector<T> const& all);

void read(json::value const& v, double& d) { d = v.to_number<double>(); }
void read(json::value const& v, bool& b) { b = v.as_bool(); }
void read(json::value const& v, std::uint64_t& n) { n = v.to_number<std::uint64_t>(); }
void read(json::value const& v, std::uint32_t& n) { n = v.to_number<std::uint32_t>(); }
void read(json::value const& v, std::string& s) { s = v.as_string(); }
template <class T>
void read(json::value const& v, std::vector<T>& all);

// Each struct says its fields once, for both directions.
template <class Visitor>
void fields(auto& s, Visitor visit)
requires requires { s.set_aside; }
{
    visit("server", s.server);
    visit("route", s.route);
    visit("address", s.address);
    visit("weight", s.weight);
    visit("set_aside", s.set_aside);
    visit("requests", s.requests);
    visit("failures", s.failures);
    visit("rate", s.rate);
}
template <class Visitor>
void fields(auto& s, Visitor visit)
requires requires { s.addresses; }
{
    visit("name", s.name);
    visit("addresses", s.addresses);
    visit("connections", s.connections);
    visit("max_connections", s.max_connections);
    visit("requests", s.requests);
    visit("in_flight", s.in_flight);
    visit("rate", s.rate);
    visit("p50_ms", s.p50_ms);
    visit("p99_ms", s.p99_ms);
}
template <class Visitor>
void fields(auto& s, Visitor visit)
requires requires { s.entitled; }
{
    visit("name", s.name);
    visit("weight", s.weight);
    visit("entitled", s.entitled);
    visit("share", s.share);
    visit("in_flight", s.in_flight);
    visit("queued", s.queued);
    visit("wait_p99_ms", s.wait_p99_ms);
    visit("refusals", s.refusals);
}
template <class Visitor>
void fields(auto& s, Visitor visit)
requires requires { s.config_version; }
{
    visit("version", s.version);
    visit("config_version", s.config_version);
    visit("draining", s.draining);
    visit("uptime_s", s.uptime_s);
    visit("connections", s.connections);
    visit("offered", s.offered);
    visit("served", s.served);
    visit("in_flight", s.in_flight);
    visit("limit", s.limit);
    visit("queued", s.queued);
    visit("capacity", s.capacity);
    visit("wait_p50_ms", s.wait_p50_ms);
    visit("wait_p99_ms", s.wait_p99_ms);
    visit("p50_ms", s.p50_ms);
    visit("p99_ms", s.p99_ms);
    visit("tenants", s.tenants);
    visit("servers", s.servers);
    visit("backends", s.backends);
}

template <class T>
json::value written_object(T const& s) {
    json::object o;
    fields(s, [&o](std::string_view name, auto const& value) { o[name] = written(value); });
    return o;
}
json::value written(backend_status const& s) { return written_object(s); }
json::value written(server_status const& s) { return written_object(s); }
json::value written(tenant_status const& s) { return written_object(s); }
template <class T>
json::value written(std::vector<T> const& all) {
    json::array a;
    for (T const& one : all) a.push_back(written(one));
    return a;
}

template <class T>
void read_object(json::value const& v, T& s) {
    json::object const& o = v.as_object();
    fields(s, [&o](std::string_view name, auto& value) { read(o.at(name), value); });
}
void read(json::value const& v, backend_status& s) { read_object(v, s); }
void read(json::value const& v, server_status& s) { read_object(v, s); }
void read(json::value const& v, tenant_status& s) { read_object(v, s); }
void read(json::value const& v, status& s) { read_object(v, s); }
template <class T>
void read(json::value const& v, std::vector<T>& all) {
    for (json::value const& one : v.as_array()) read(one, all.emplace_back());
}

template <class T>
std::optional<T> parsed(std::string_view text) {
    try {
        T all;
        read(json::parse(json::string_view{text.data(), text.size()}), all);
        return all;
    } catch (std::exception const&) {  // Boost.JSON says so that something is not what it should be
        return std::nullopt;
    }
}

}  // namespace

std::string to_json(status const& s) { return json::serialize(written_object(s)); }

std::optional<status> from_json(std::string_view text) { return parsed<status>(text); }
std::optional<std::vector<status>> all_from_json(std::string_view text) {
    return parsed<std::vector<status>>(text);
}

}  // namespace rondo::gateway
