// A program that knows the library only as it is installed.
#include "rondo/core/assert.hpp"

int main(int argc, char**) {
    RONDO_ASSERT(argc >= 1, "a program has a name");
    return 0;
}
