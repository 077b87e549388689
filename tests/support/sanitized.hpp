// sanitized.hpp: RONDO_TEST_SANITIZED in a build with a sanitizer that has an operator new of its
// own, which a program cannot replace, and that takes more memory than the program does.
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RONDO_TEST_SANITIZED 1
#endif
#endif
