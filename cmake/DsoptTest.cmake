# dsopt_test(NAME SOURCES a.c b.c [LABELS quick threads slow] [LIBS dsopt] [ARGS …] [TIMEOUT s]
#            [DEFINES A=1] [PROGRAMS dsoptc])
#
# Builds bin/tests/NAME and registers it with ctest. Default label: quick (under a minute for all of
# them on two cores); `threads` marks what ThreadSanitizer runs; `slow` is left out of `./dev test`.
# A test that cannot run here prints why and exits 77: ctest shows it as skipped, never as passed.
# It links dsopt_internal (or LIBS), and knows DSOPT_SOURCE_DIR, DSOPT_BUILD_DIR and DSOPT_BIN_DIR.
# The target dsopt_thread_tests builds the tests labelled threads.
add_custom_target(dsopt_thread_tests)

function(dsopt_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;LABELS;LIBS;ARGS;DEFINES;PROGRAMS")
    if(NOT arg_LABELS)
        set(arg_LABELS quick)
    endif()
    if(NOT arg_LIBS)
        set(arg_LIBS dsopt_internal)
    endif()
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 300)
    endif()
    add_executable(${name} ${arg_SOURCES})
    set_target_properties(${name} PROPERTIES
                          RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin/tests")
    target_link_libraries(${name} PRIVATE ${arg_LIBS})
    target_compile_definitions(${name} PRIVATE
        "DSOPT_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\"" "DSOPT_BUILD_DIR=\"${PROJECT_BINARY_DIR}\""
        "DSOPT_BIN_DIR=\"${PROJECT_BINARY_DIR}/bin\"" ${arg_DEFINES})
    if("threads" IN_LIST arg_LABELS)
        add_dependencies(dsopt_thread_tests ${name})
    endif()
    if(arg_PROGRAMS)
        add_dependencies(${name} ${arg_PROGRAMS})
    endif()
    add_test(NAME ${name} COMMAND ${name} ${arg_ARGS}
             WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
    set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
                         SKIP_RETURN_CODE 77)
endfunction()
