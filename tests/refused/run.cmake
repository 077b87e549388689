# Compiles `source` and compares its errors with its marks; see CMakeLists.txt.
execute_process(
  COMMAND ${compiler} -std=c++23 -fsyntax-only -I ${include} ${source}
  ERROR_VARIABLE said OUTPUT_QUIET)
file(READ ${source} text)
string(REGEX MATCHALL "// refused" marks "${text}")
string(REGEX MATCHALL " error: " errors "${said}")
string(REGEX MATCHALL "${expected}" refusals "${said}")
list(LENGTH marks marks)
list(LENGTH errors errors)
list(LENGTH refusals refusals)
if(marks EQUAL 0 OR NOT errors EQUAL marks OR NOT refusals EQUAL marks)
  message(FATAL_ERROR
    "${marks} lines are marked, and there are ${errors} errors, ${refusals} of them right:\n${said}")
endif()
