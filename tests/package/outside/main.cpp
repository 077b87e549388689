// A program that knows the library only as it is installed.
#include "rondo/core/block_on.hpp"
#include "rondo/core/task.hpp"

namespace {

rondo::task<int> six() { co_return 6; }

rondo::task<int> answer() {
    int const product = co_await six() * 7;
    co_return product;
}

}  // namespace

int main() { return rondo::block_on(answer()) == 42 ? 0 : 1; }
