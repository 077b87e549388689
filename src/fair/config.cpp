#include "rondo/fair/config.hpp"

#include <stdexcept>
#include <string>

namespace rondo::fair {

std::optional<config_error> validate(limits const& l) noexcept {
    if (l.shards == 0 || l.shards > max_shards) {
        return config_error{"shards", "is from 1 to 4096"};
    }
    if (l.max_global == 0) return config_error{"max_global", "is at least 1"};
    if (l.max_per_tenant == 0) return config_error{"max_per_tenant", "is at least 1"};
    if (l.quantum == 0 || l.quantum > max_quantum) {
        return config_error{"quantum", "is from 1 to 10^12"};
    }
    if (l.patience < clock::duration::zero()) {
        return config_error{"patience", "is not negative"};
    }
    return std::nullopt;
}

std::optional<config_error> validate(entitlement const& e) noexcept {
    if (e.weight == 0 || e.weight > max_weight) {
        return config_error{"weight", "is from 1 to 10^6"};
    }
    if (e.when_full == backpressure::evict_longest) {
        return config_error{"when_full", "is evict_longest for all tenants or for none"};
    }
    return std::nullopt;
}

std::optional<config_error> validate(terms const& t) noexcept {
    if (t.cost == 0 || t.cost > max_cost) return config_error{"cost", "is from 1 to 2^32 - 1"};
    if (t.priority > priority::low) return config_error{"priority", "is high, normal or low"};
    return std::nullopt;
}

void detail::require(std::optional<config_error> const& no_error) {
    if (!no_error) return;
    throw std::invalid_argument{"rondo::fair: " + std::string{no_error->field} + " " +
                                std::string{no_error->requirement}};
}

}  // namespace rondo::fair
