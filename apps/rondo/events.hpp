// events.hpp: what a stream of server-sent events says, as it comes in pieces of any size.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace rondo::gateway {

class event_reader {
  public:
    using taker = std::function<bool(std::string_view name, std::string_view data)>;

    // For each event, until it returns false. What it is given is valid until then.
    explicit event_reader(taker take) : take_(std::move(take)) {}

    // What became of the stream: false if that was enough.
    bool take(std::string_view piece);
    // Of an event that is not complete.
    std::size_t pending() const noexcept { return line_.size() + name_.size() + data_.size(); }

  private:
    bool end_line();

    taker take_;
    std::string line_;
    std::string name_;
    std::string data_;
};

}  // namespace rondo::gateway
