// gateway.hpp: the payment gateway: it alone decides what is charged, by its ledger.
//
// Serves         prepare, commit, cancel, delivered and remains (messages.hpp), of screens only.
// Guarantee      what it answers is in the ledger before. When the ledger fails, the process ends
//                and nothing is answered.
// Rejection      of a card is drawn once for each order, with the chosen probability, and kept.
#pragma once

#include <chrono>

#include "place.hpp"
#include "rondo/core/task.hpp"
#include "stock.hpp"
#include "view.hpp"

namespace rondo::shop {

struct gateway_options {
    stock sold;
    double rejection = 0;  // the probability
    std::chrono::milliseconds authorisation = std::chrono::seconds{60};
    onlooker shown{};
};

// Until it is stopped.
task<void> run_gateway(place here, gateway_options chosen);

}  // namespace rondo::shop
