# Installs the build, then configures, builds and runs the project outside it. With `refused`, the
# configuration must fail and say so.

function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "could not ${what}:\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${scratch})
if(sources)
  set(config Debug) # compiles the library once more; this is the quickest way
else()
  run("install" ${CMAKE_COMMAND} --install ${build} --config ${config} --prefix ${scratch}/prefix)
endif()

execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${project} -B ${scratch}/build -G "${generator}"
    -D CMAKE_BUILD_TYPE=${config}
    -D CMAKE_CXX_COMPILER=${compiler}
    -D "CMAKE_CXX_COMPILER_LAUNCHER=${launcher}"
    -D CMAKE_CXX_FLAGS=${flags}
    -D CMAKE_EXE_LINKER_FLAGS=${link_flags}
    -D CMAKE_PREFIX_PATH=${scratch}/prefix
    -D "components=${components}"
    -D "links=${links}"
    -D sources=${sources}
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(refused)
  if(result EQUAL 0 OR NOT output MATCHES "${refused}")
    message(FATAL_ERROR "expected a refusal that says \"${refused}\", got:\n${output}")
  endif()
  return()
elseif(NOT result EQUAL 0)
  message(FATAL_ERROR "could not configure:\n${output}")
endif()

# The installed tree must not remember where it was built.
file(GLOB_RECURSE files ${scratch}/prefix/*.cmake)
foreach(file IN LISTS files)
  file(READ ${file} text)
  string(FIND "${text}" "${build}" at)
  if(NOT at EQUAL -1)
    message(FATAL_ERROR "${file} mentions ${build}")
  endif()
endforeach()

# The unit names files in /usr: it is installed there, and nowhere else.
if(EXISTS ${scratch}/prefix/lib/systemd)
  message(FATAL_ERROR "a unit was installed that names files of another prefix")
endif()

run("build" ${CMAKE_COMMAND} --build ${scratch}/build --config ${config})
if(sources)
  file(GLOB_RECURSE built RELATIVE ${scratch}/build ${scratch}/build/*.a)
  if(NOT built STREQUAL "rondo/src/core/librondo_core.a")
    message(FATAL_ERROR "built, although core alone is linked: ${built}")
  endif()
endif()
run("run" ${scratch}/build/outside)
