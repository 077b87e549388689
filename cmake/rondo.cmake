# rondo.cmake: the vocabulary of our CMakeLists.txt files.
#
#   rondo_module(<name> [CHECKED] [SOURCES <file>...] [DEPENDS <module>...]
#                [LINKS <target>...] [PACKAGES "<find_package arguments>"...])
#   rondo_tests(<module> SOURCES <file>... [NAME <name>] [LINKS <target>...] [TIMEOUT <seconds>])
#   rondo_tests(<module> EACH <file>... [LINKS <target>...] [TIMEOUT <seconds>])
#                                        a program of its own for each file
#   rondo_model_tests(<module> ...)      the same, against the checked variant
#   rondo_examples(<module> <name>... [LINKS <target>...])
#   rondo_benches(<module> <name>... [LINKS <target>...])

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
include(GoogleTest)

set(RONDO_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/rondo)

# find_package is called in a module's folder, but its targets are linked from everywhere.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  find_program(RONDO_CCACHE ccache)
  mark_as_advanced(RONDO_CCACHE)
  if(RONDO_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
    # ccache may only cache a file that uses a precompiled header when told not to mind these.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      ${RONDO_CCACHE})
  endif()
endif()

# What every target of ours is compiled with; nothing of it reaches a user of the library.
function(rondo_compile_like_ours target)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  if(PROJECT_IS_TOP_LEVEL)
    target_compile_options(${target} PRIVATE
      -Wall -Wextra -Wpedantic -Wshadow -Wconversion
      $<$<CXX_COMPILER_ID:GNU>:-Wno-attributes=clang::>)
  endif()
endfunction()

# Adds <root>/<module> for each module that exists there, dependencies first.
function(rondo_add_folders root)
  foreach(module IN LISTS RONDO_MODULES)
    if(NOT EXISTS ${PROJECT_SOURCE_DIR}/${root}/${module}/CMakeLists.txt)
      continue()
    elseif(root STREQUAL "src" OR TARGET rondo::${module})
      add_subdirectory(${PROJECT_SOURCE_DIR}/${root}/${module} ${PROJECT_BINARY_DIR}/${root}/${module})
    endif()
  endforeach()
endfunction()

# A library target rondo::<name>: static, or an interface when it has no sources.
#
# CHECKED makes rondo::<name>_checked as well: the same sources with RONDO_CHECKED=1, that is with
# the atomics, mutexes and parking of the model checker. Both variants define the same names, so
# one program must never link both; the property RONDO_POLICY makes CMake refuse it. A module with
# no dependencies and no checked variant (check itself) is the same in both worlds. What depends on
# a module that has only the real variant is compiled out of the checked one.
#
# PACKAGES are looked for here and again by whoever uses the installed module. When one is missing
# the module is left out, with a line saying so.
function(rondo_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "CHECKED" "" "SOURCES;DEPENDS;LINKS;PACKAGES")
  foreach(package IN LISTS arg_PACKAGES)
    separate_arguments(find UNIX_COMMAND "${package}")
    list(GET find 0 found)
    find_package(${find} QUIET)
    if(NOT ${found}_FOUND)
      message(STATUS "rondo::${name} is left out: ${package} was not found")
      return()
    endif()
  endforeach()

  rondo_module_variant(rondo_${name} ${name})
  set(targets rondo_${name})
  foreach(dependency IN LISTS arg_DEPENDS)
    target_link_libraries(rondo_${name} ${scope} rondo::${dependency})
  endforeach()
  if(arg_CHECKED OR arg_DEPENDS)
    rondo_set_policy(rondo_${name} real)
  endif()

  if(arg_CHECKED)
    rondo_module_variant(rondo_${name}_checked ${name}_checked CHECKED)
    list(APPEND targets rondo_${name}_checked)
    foreach(dependency IN LISTS arg_DEPENDS)
      get_target_property(policy rondo_${dependency} INTERFACE_RONDO_POLICY)
      if(TARGET rondo::${dependency}_checked)
        target_link_libraries(rondo_${name}_checked ${scope} rondo::${dependency}_checked)
      elseif(NOT policy)
        target_link_libraries(rondo_${name}_checked ${scope} rondo::${dependency})
      endif()
    endforeach()
    target_link_libraries(rondo_${name}_checked ${scope} rondo::check)
    target_compile_definitions(rondo_${name}_checked ${scope} RONDO_CHECKED=1)
    rondo_set_policy(rondo_${name}_checked checked)
    list(APPEND arg_DEPENDS check)
  endif()

  if(RONDO_INSTALL)
    rondo_install_module(${name} "${targets}" "${arg_DEPENDS}" "${arg_PACKAGES}")
    rondo_install_pkg_config(${name} "${arg_DEPENDS}" "${arg_LINKS}" "${arg_SOURCES}")
  endif()
endfunction()

# One library of rondo_module, whose arguments it sees. Sets scope to PUBLIC or INTERFACE.
macro(rondo_module_variant target alias)
  if(arg_SOURCES)
    set(scope PUBLIC)
    add_library(${target} STATIC ${arg_SOURCES})
    rondo_compile_like_ours(${target})
    rondo_precompile(${target} ${ARGN})
  else()
    set(scope INTERFACE)
    add_library(${target} INTERFACE)
  endif()
  add_library(rondo::${alias} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${alias})
  target_compile_features(${target} ${scope} cxx_std_23)
  target_include_directories(${target} ${scope}
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} ${scope} ${arg_LINKS})
endmacro()

function(rondo_set_policy target policy)
  set_property(TARGET ${target} PROPERTY INTERFACE_RONDO_POLICY ${policy})
  set_property(TARGET ${target} APPEND PROPERTY COMPATIBLE_INTERFACE_STRING RONDO_POLICY)
endfunction()

function(rondo_install_module name targets depends packages)
  install(TARGETS ${targets} EXPORT rondo-${name} COMPONENT library)
  install(EXPORT rondo-${name} NAMESPACE rondo:: FILE rondo-${name}-targets.cmake
    DESTINATION ${RONDO_PACKAGE_DIR} COMPONENT library)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/rondo/${name}
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rondo COMPONENT library)
  foreach(dependency IN LISTS depends)
    get_property(below GLOBAL PROPERTY RONDO_${dependency}_DEPENDS)
    list(PREPEND depends ${below})
  endforeach()
  list(REMOVE_DUPLICATES depends)
  set_property(GLOBAL PROPERTY RONDO_${name}_DEPENDS ${depends})
  set_property(GLOBAL APPEND PROPERTY RONDO_INSTALLED_MODULES ${name})
  set_property(GLOBAL APPEND_STRING PROPERTY RONDO_INSTALLED_TABLE
    "set(rondo_${name}_depends \"${depends}\")\nset(rondo_${name}_packages \"${packages}\")\n")
endfunction()

# rondo-<name>.pc, for those who build without CMake: pkg-config --cflags --libs rondo-sync
function(rondo_install_pkg_config name depends links sources)
  list(REMOVE_ITEM depends check) # of the checked variant, which pkg-config does not know
  list(TRANSFORM depends PREPEND rondo-)
  set(known_OpenSSL::Crypto libcrypto)
  set(known_OpenSSL::SSL openssl)
  set(known_SQLite::SQLite3 sqlite3)
  set(known_prometheus-cpp::core prometheus-cpp-core)
  foreach(link IN LISTS links)
    if(DEFINED known_${link})
      list(APPEND depends ${known_${link}})
    endif()
  endforeach()
  list(JOIN depends " " RONDO_PC_REQUIRES)
  set(RONDO_PC_NAME ${name})
  set(RONDO_PC_LIBS "")
  if(sources)
    set(RONDO_PC_LIBS "-L\${libdir} -lrondo_${name}")
  endif()
  file(RELATIVE_PATH RONDO_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  set(file ${PROJECT_BINARY_DIR}/pkgconfig/rondo-${name}.pc)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/rondo.pc.in ${file} @ONLY)
  install(FILES ${file} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
endfunction()

# The files find_package(rondo) reads, for the modules installed so far.
function(rondo_install_package)
  get_property(RONDO_INSTALLED_MODULES GLOBAL PROPERTY RONDO_INSTALLED_MODULES)
  get_property(RONDO_INSTALLED_TABLE GLOBAL PROPERTY RONDO_INSTALLED_TABLE)
  set(here ${PROJECT_BINARY_DIR}/cmake)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/rondo-config.cmake.in
    ${here}/rondo-config.cmake INSTALL_DESTINATION ${RONDO_PACKAGE_DIR} NO_SET_AND_CHECK_MACRO
    NO_CHECK_REQUIRED_COMPONENTS_MACRO)
  write_basic_package_version_file(${here}/rondo-config-version.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES ${here}/rondo-config.cmake ${here}/rondo-config-version.cmake
    DESTINATION ${RONDO_PACKAGE_DIR} COMPONENT library)
endfunction()

# Compiles a target with headers that most files include and that never change, already read: of the
# standard library, with `test` of googletest, and with `asio` (or where the folder has set
# RONDO_SPEAKS_ASIO) of Boost.Asio. They are a third of what compiling costs. What this hides, a
# source that lacks an include, is seen by g++, which reads all headers of the sources itself.
function(rondo_precompile target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TEST;CHECKED" "" "")
  if(NOT PROJECT_IS_TOP_LEVEL OR NOT (arg_TEST OR CMAKE_CXX_COMPILER_ID STREQUAL "Clang"))
    return()
  endif()
  set(name precompiled)
  set(headers ${RONDO_STANDARD_HEADERS})
  if(arg_TEST)
    string(APPEND name _test)
    list(APPEND headers <gtest/gtest.h>)
  endif()
  if(arg_CHECKED)  # which has a definition more on its command line
    string(APPEND name _checked)
  elseif(RONDO_SPEAKS_ASIO)
    string(APPEND name _asio)
    list(APPEND headers ${RONDO_ASIO_HEADERS})
  endif()
  if(NOT TARGET ${name})
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled/${name}.cpp CONTENT "")
    add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/precompiled/${name}.cpp)
    rondo_compile_like_ours(${name})
    target_compile_features(${name} PRIVATE cxx_std_23)
    target_compile_definitions(${name} PRIVATE $<$<BOOL:${arg_CHECKED}>:RONDO_CHECKED=1>)
    # Without a time stamp in it, so that ccache may reuse what was compiled with it.
    target_compile_options(${name} PRIVATE
      "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>"
      "$<$<AND:$<BOOL:${arg_TEST}>,$<NOT:$<BOOL:${arg_CHECKED}>>>:${RONDO_TEST_OPTIONS}>")
    target_link_libraries(${name} PRIVATE
      $<$<BOOL:${arg_TEST}>:GTest::gtest> $<$<BOOL:${RONDO_SPEAKS_ASIO}>:Boost::headers>)
    target_precompile_headers(${name} PRIVATE ${headers})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${name})
endfunction()

set(RONDO_STANDARD_HEADERS
  <algorithm> <array> <atomic> <chrono> <concepts> <coroutine> <cstdint> <deque> <exception>
  <expected> <functional> <map> <memory> <mutex> <optional> <set> <span> <stdexcept> <string>
  <string_view> <thread> <tuple> <utility> <variant> <vector>)
set(RONDO_ASIO_HEADERS
  <boost/asio/any_io_executor.hpp> <boost/asio/cancellation_signal.hpp>
  <boost/asio/io_context.hpp> <boost/asio/ip/tcp.hpp> <boost/asio/ip/udp.hpp>
  <boost/asio/post.hpp> <boost/asio/steady_timer.hpp>)

set(RONDO_TEST_OPTIONS "" CACHE STRING
  "What the sources of tests are compiled with, but for models, which run for long")

# An executable of tests, each of which is a ctest of its own, <prefix>.<Suite>.<Test>, with the
# label <kind>.<module>: ctest's summary then gives the time of each module.
function(rondo_test_executable target module prefix kind library sources links timeout)
  string(REGEX MATCH "_checked$" checked ${library})
  string(REPLACE "_checked" "CHECKED" checked "${checked}")
  add_executable(${target} ${sources})
  rondo_compile_like_ours(${target})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)  # for support/
  target_link_libraries(${target} PRIVATE ${library} ${links} GTest::gtest GTest::gtest_main)
  if(NOT checked)
    target_compile_options(${target} PRIVATE ${RONDO_TEST_OPTIONS})
  endif()
  rondo_precompile(${target} TEST ${checked})
  if(kind STREQUAL "unit")
    add_dependencies(unit_tests ${target})
  endif()
  gtest_discover_tests(${target}
    TEST_PREFIX ${prefix}.
    DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS ${kind}.${module} TIMEOUT ${timeout})
endfunction()

function(rondo_tests module)
  rondo_test_programs(unit ${module} ${module} rondo::${module} 120 ${ARGN})
endfunction()

function(rondo_model_tests module)
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=thread")  # the checker has all its threads on one
    return()
  endif()
  set(library rondo::${module}_checked)
  if(module STREQUAL "check")
    set(library rondo::check)
  endif()
  rondo_test_programs(model ${module} model.${module} ${library} 300 ${ARGN})
endfunction()

function(rondo_test_programs kind module prefix library timeout)
  cmake_parse_arguments(PARSE_ARGV 5 arg "" "NAME;TIMEOUT" "SOURCES;EACH;LINKS")
  if(arg_TIMEOUT)
    set(timeout ${arg_TIMEOUT})
  endif()
  if(kind STREQUAL "model")
    list(PREPEND arg_LINKS rondo::check)
  endif()
  if(arg_SOURCES)
    if(NOT arg_NAME)
      set(arg_NAME ${module})
    endif()
    rondo_test_executable(${kind}_${arg_NAME} ${module} ${prefix} ${kind} ${library}
      "${arg_SOURCES}" "${arg_LINKS}" ${timeout})
  endif()
  foreach(source IN LISTS arg_EACH)
    string(REGEX REPLACE "(_model)?_test\\.cpp$" "" part ${source})
    rondo_test_executable(${kind}_${module}_${part} ${module} ${prefix} ${kind} ${library}
      ${source} "${arg_LINKS}" ${timeout})
  endforeach()
endfunction()

# Each example is a program that is built, and run as a test: it checks itself and exits with 0.
function(rondo_examples module)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINKS")
  foreach(name IN LISTS arg_UNPARSED_ARGUMENTS)
    set(target example_${module}_${name})
    add_executable(${target} ${name}.cpp)
    rondo_compile_like_ours(${target})
    rondo_precompile(${target})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name})
    target_link_libraries(${target} PRIVATE rondo::${module} ${arg_LINKS})
    if(RONDO_TESTS)
      add_test(NAME example.${module}.${name} COMMAND ${target})
      set_tests_properties(example.${module}.${name} PROPERTIES LABELS example.${module} TIMEOUT 120)
    endif()
  endforeach()
endfunction()

# Each bench is a program with a main() of its own (bench/support); of Google Benchmark it has what keeps
# the compiler from leaving work out. `benches` builds them all, the default target none.
function(rondo_benches module)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINKS")
  foreach(name IN LISTS arg_UNPARSED_ARGUMENTS)
    set(target bench_${module}_${name})
    add_executable(${target} EXCLUDE_FROM_ALL ${name}.cpp)
    rondo_compile_like_ours(${target})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name})
    target_link_libraries(${target} PRIVATE
      rondo::${module} ${arg_LINKS} benchmark::benchmark)
    add_dependencies(benches ${target})
  endforeach()
endfunction()
