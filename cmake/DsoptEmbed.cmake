# Text files as C arrays: dsopt_embed(OUTPUT STDLIB files... TEXTS files... MATH file).
# The tables are described in frontend/embed.h. The script embed_script.cmake does the work at build
# time, so an edited .opt file is embedded by the next build.
set(DSOPT_EMBED_SCRIPT "${CMAKE_CURRENT_LIST_DIR}/embed_script.cmake")

function(dsopt_embed output)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "STDLIB;TEXTS;MATH")
    add_custom_command(
        OUTPUT "${output}"
        COMMAND "${CMAKE_COMMAND}" "-DOUTPUT=${output}" "-DSTDLIB=${arg_STDLIB}"
                "-DTEXTS=${arg_TEXTS}" "-DMATH=${arg_MATH}" -P "${DSOPT_EMBED_SCRIPT}"
        DEPENDS ${arg_STDLIB} ${arg_TEXTS} ${arg_MATH} "${DSOPT_EMBED_SCRIPT}"
        COMMENT "Embedding stdlib and math texts"
        VERBATIM)
endfunction()
