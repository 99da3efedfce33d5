# The layers: cli, examples, bench -> runtime -> codegen -> frontend. A folder includes what is in
# itself or below, and of another folder only the headers named in `public_*`.
#
#   in:  -DSOURCE=folder of the project, -DEXPECT=number of violations (default 0)
#   out: "frontend/x.c:3: includes codegen/ir.h: frontend may not use codegen"
#
# frontend/embed.h and frontend/ops.def are tables that all layers read; of codegen's headers others
# take the contracts (codegen.h and what it gathers), of runtime's dsopt.h and, inside the project,
# runtime.h.
cmake_minimum_required(VERSION 3.25)
if(NOT EXPECT)
    set(EXPECT 0)
endif()

set(rank_frontend 0)
set(rank_codegen 1)
set(rank_runtime 2)
set(rank_cli 3)
set(rank_examples 3)
set(rank_bench 3)
set(public_frontend frontend.h embed.h ops.def diag.def parser.tab.h)
set(public_codegen codegen.h abi.h backend.h exec.h ir.h plan.h reduce.h pass.def backend.def)
set(public_runtime dsopt.h runtime.h)

set(violations 0)
set(lines_seen 0)
foreach(folder IN ITEMS frontend codegen runtime cli examples bench)
    file(GLOB_RECURSE files RELATIVE "${SOURCE}" "${SOURCE}/${folder}/*.[chly]"
         "${SOURCE}/${folder}/*.def")
    foreach(file IN LISTS files)
        file(STRINGS "${SOURCE}/${file}" includes REGEX "^[ \t]*#[ \t]*include[ \t]*\"")
        foreach(line IN LISTS includes)
            math(EXPR lines_seen "${lines_seen} + 1")
            string(REGEX MATCH "\"([^\"]+)\"" quoted "${line}")
            set(header "${CMAKE_MATCH_1}")
            # Without a folder it is one of the folder's own, except where it is the public header.
            if(header MATCHES "^(\\.\\./)*([a-z]+)/(.*)$")
                set(other "${CMAKE_MATCH_2}")
                set(rest "${CMAKE_MATCH_3}")
            else()
                continue()
            endif()
            if(NOT DEFINED rank_${other} OR other STREQUAL folder)
                continue()
            endif()
            if(rank_${other} GREATER_EQUAL rank_${folder})
                message("${file}: includes ${header}: ${folder} may not use ${other}")
                math(EXPR violations "${violations} + 1")
            elseif(NOT rest IN_LIST public_${other})
                message("${file}: includes ${header}: only ${public_${other}} of ${other} are for "
                        "others")
                math(EXPR violations "${violations} + 1")
            elseif(folder STREQUAL "examples" AND NOT rest STREQUAL "dsopt.h")
                message("${file}: includes ${header}: examples use dsopt.h alone")
                math(EXPR violations "${violations} + 1")
            endif()
        endforeach()
    endforeach()
endforeach()

message("${lines_seen} includes, ${violations} against the layers, ${EXPECT} expected")
if(NOT lines_seen OR NOT violations EQUAL EXPECT)
    message(FATAL_ERROR "layers")
endif()
