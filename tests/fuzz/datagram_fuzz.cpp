// A datagram is refused, or is exactly what its message encodes to; and so is every body of the
// shop that can be read.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rondo/cluster/message.hpp"
#include "rondo/core/assert.hpp"
#include "shop/container.hpp"
#include "shop/messages.hpp"

namespace {

using namespace rondo::shop;
namespace cluster = rondo::cluster;
using bytes = std::span<std::byte const>;

template <class T>
void try_body(bytes body) {
    auto const read = unpack<T>(body);
    if (!read) return;
    auto const again = unpack<T>(pack(*read));
    RONDO_ASSERT(again && *again == *read, "what was read can be written and read again");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    bytes const all = std::as_bytes(std::span{data, size});
    cluster::secret const shared{7, {}};
    if (auto const m = cluster::decode(all, shared)) {
        RONDO_ASSERT(cluster::decode(cluster::encode(*m, shared), shared) == *m, "it comes back");
    }
    try_body<proposal>(all);
    try_body<authorised>(all);
    try_body<payment>(all);
    try_body<cancellation>(all);
    try_body<attempt_at>(all);
    try_body<ending>(all);
    try_body<why>(all);
    try_body<remaining>(all);
    try_body<order_request>(all);
    try_body<cup>(all);
    try_body<levels_known>(all);
    try_body<presence>(all);
    try_body<holding>(all);
    try_body<known_epoch>(all);
    if (auto const c = container::read(all)) {
        RONDO_ASSERT(container::read(c->write()) == c, "a container comes back");
    }
    return 0;
}
