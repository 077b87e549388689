# broken_shops.cmake: the simulation linked with one broken file at a time, each of which an invariant
# has to see: broken.shop.<mutant>, for every mutant of tests/mutants/shop.mutants.
#
# Only that file is compiled, without optimisation (an object of the program comes before the same one
# of a library), so that all of them take less than a minute. Left out with sanitizers: they prove the
# checks of the simulation, not its use of memory.

set(within 1000)  # seeds; most are caught by the first ten

if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  return()
endif()

set(list ${PROJECT_SOURCE_DIR}/tests/mutants/shop.mutants)
set(copies ${CMAKE_CURRENT_BINARY_DIR}/broken)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
file(STRINGS ${list} entries REGEX "^(mutant|file) ")
set(names "")
set(originals "")
foreach(entry IN LISTS entries)
  if(entry MATCHES "^mutant (.+)$")
    list(APPEND names ${CMAKE_MATCH_1})
  elseif(entry MATCHES "^file (.+\\.cpp)$")
    list(APPEND originals ${PROJECT_SOURCE_DIR}/${CMAKE_MATCH_1})
  else()
    message(FATAL_ERROR "${list}: '${entry}' is no .cpp: all that include it would have to be compiled")
  endif()
endforeach()

function(compile_broken target)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  # g++ transfers between coroutines without growing the stack only if told so. A time stamp in the
  # precompiled header would keep ccache from using it.
  target_compile_options(${target} PRIVATE -O0
    "$<$<CXX_COMPILER_ID:GNU>:-foptimize-sibling-calls;-Wno-attributes=clang::>"
    "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
  target_link_libraries(${target} PRIVATE shop_simulation rondo::asio tomlplusplus::tomlplusplus)
endfunction()

list(TRANSFORM names PREPEND ${copies}/ OUTPUT_VARIABLE broken_files)
list(TRANSFORM broken_files APPEND .cpp)
add_custom_command(OUTPUT ${broken_files}
  COMMAND ${PROJECT_SOURCE_DIR}/tools/mutants --copies ${list} ${copies}
  DEPENDS ${list} ${originals} ${PROJECT_SOURCE_DIR}/tools/mutants
  COMMENT "Breaking the shop"
  VERBATIM)
add_custom_target(broken_shop_files DEPENDS ${broken_files})
add_custom_target(broken_shops)

# Everything that is included in most of them is read once.
set(precompiled broken_shop_precompiled)
file(CONFIGURE OUTPUT ${copies}/precompiled/none.cpp CONTENT "")
add_library(${precompiled} OBJECT ${copies}/precompiled/none.cpp)
target_precompile_headers(${precompiled} PRIVATE
  ${PROJECT_SOURCE_DIR}/apps/shop/leader.hpp
  ${PROJECT_SOURCE_DIR}/apps/shop/journal.hpp
  ${PROJECT_SOURCE_DIR}/include/rondo/cluster/token_ring.hpp)
compile_broken(${precompiled})

foreach(name broken original IN ZIP_LISTS names broken_files originals)
  cmake_path(GET original PARENT_PATH beside)
  set(target broken_shop_${name})
  add_executable(${target} ${broken})
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${name}
    RUNTIME_OUTPUT_DIRECTORY ${copies})
  target_include_directories(${target} PRIVATE ${beside})
  target_link_libraries(${target} PRIVATE simulate_main)
  target_precompile_headers(${target} REUSE_FROM ${precompiled})
  compile_broken(${target})
  add_dependencies(${target} broken_shop_files)
  add_dependencies(broken_shops ${target})
  add_test(NAME broken.shop.${name} COMMAND ${target} --caught-within ${within})
  set_tests_properties(broken.shop.${name} PROPERTIES LABELS broken.shop TIMEOUT 120)
endforeach()

# What is said of runs. This shop shows a violation at seeds 1 and 3.
function(broken_shop_says name expected)
  add_test(NAME broken.shop.${name} COMMAND broken_shop_sell_more_than_there_is ${ARGN})
  set_tests_properties(broken.shop.${name} PROPERTIES LABELS broken.shop TIMEOUT 120
    PASS_REGULAR_EXPRESSION "${expected}")
endfunction()

# Of many seeds all are run and counted, also those that show a violation.
broken_shop_says(every_seed_counts
  "seed 1: I1: .*process 1 of [0-9]+, [0-9.]+ s: 1 runs, " --seeds 1)
broken_shop_says(seeds_begin_where_it_is_said
  "seed 3: I1: .*process 1 of [0-9]+, [0-9.]+ s: 1 runs, " --seeds 1 --seed 3)
broken_shop_says(many_seeds_have_no_trace "--trace is for one run" --seeds 1 --trace)
broken_shop_says(one_seed_has_its_shortest_schedule
  "seed 1: I1: .*with the first [0-9]+ faults:.*again: " --seed 1)
