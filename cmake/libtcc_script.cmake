# Run by DsoptLibtcc.cmake: libtcc.a -> one object that shows only the calls we use and reaches out
# only to harmless functions of the C library.
#
#   in:  libtcc.a: 288 global names; calls exit, open, dlsym, …
#   out: libtcc_local.o: tcc_new, tcc_delete, … global; calls tcc_host_exit, …, memcpy, strtod
#
# The list of what it may call is closed: a libtcc that calls anything else stops the build.
cmake_minimum_required(VERSION 3.25)

set(keep tcc_new tcc_delete tcc_set_error_func tcc_set_options tcc_set_output_type
    tcc_compile_string tcc_add_symbol tcc_relocate tcc_list_symbols)
set(allowed _GLOBAL_OFFSET_TABLE_ __errno_location __isoc99_sscanf __longjmp_chk __memcpy_chk
    __memmove_chk __snprintf_chk __sprintf_chk __vsnprintf_chk __stack_chk_fail _setjmp ldexp
    memcmp memcpy memmove memset qsort strchr strcmp strcpy strlen strrchr strstr strtod
    strtof strtol strtold strtoul strtoull)

function(run)
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed OUTPUT_VARIABLE text
                    ERROR_VARIABLE text_error)
    if(failed)
        message(FATAL_ERROR "${ARGN}: ${text_error}")
    endif()
    set(text "${text}" PARENT_SCOPE)
endfunction()

set(keep_options "")
foreach(name IN LISTS keep)
    list(APPEND keep_options "--keep-global-symbol=${name}")
endforeach()
run("${LINKER}" -r -o "${OUTPUT}" --whole-archive "${LIBTCC}")
run("${OBJCOPY}" "--redefine-syms=${SYMBOLS}" --rename-section .data=ds_tcc_data
    --rename-section .bss=ds_tcc_bss ${keep_options} "${OUTPUT}")

run("${NM}" -u "${OUTPUT}")
string(REGEX REPLACE " *U ([^\n]+)\n" "\\1;" names "${text}")
foreach(name IN LISTS names)
    if(name AND NOT name MATCHES "^tcc_host_" AND NOT name IN_LIST allowed)
        file(REMOVE "${OUTPUT}")
        message(FATAL_ERROR "${LIBTCC} calls ${name}, which this build does not know: "
                            "add it to cmake/libtcc.syms or to cmake/libtcc_script.cmake")
    endif()
endforeach()

# Every writable section must be one of the two that host_begin restores; constants that only hold
# addresses (.data.rel.ro) are fine.
run("${READELF}" -SW "${OUTPUT}")
string(REGEX MATCHALL "\\] [^ ]+ +(PROGBITS|NOBITS) +[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ [0-9a-f]+ +WA"
       sections "${text}")
foreach(section IN LISTS sections)
    string(REGEX MATCH "\\] ([^ ]+) +[A-Z]+ +[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+)" ignored "${section}")
    set(name "${CMAKE_MATCH_1}")
    math(EXPR size "0x${CMAKE_MATCH_2}")
    if(NOT name MATCHES "^(ds_tcc_data|ds_tcc_bss|\\.data\\.rel\\.ro.*)$")
        file(REMOVE "${OUTPUT}")
        message(FATAL_ERROR "${LIBTCC} has the writable section ${name}: not known to this build")
    endif()
    if(name STREQUAL "ds_tcc_data" AND size GREATER DATA_MAX)
        file(REMOVE "${OUTPUT}")
        message(FATAL_ERROR "${LIBTCC} has ${size} bytes of initialised variables, more than "
                            "DSOPT_TCC_DATA_MAX (${DATA_MAX})")
    endif()
endforeach()
