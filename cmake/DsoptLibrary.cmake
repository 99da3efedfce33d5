# The libraries, all from the same objects:
#
#   dsopt_internal   static, every symbol visible: for the command line, the benchmark and the tests
#   libdsopt.so      exports dsopt_* only (version script; the header marks them default-visible)
#   libdsopt.a       one relocatable object in which everything but dsopt_* is local, so that a
#                    program with its own `next`, `step`, `tok` or `file` links
#   dsopt            what the examples link: libdsopt.a as a user gets it (in sanitizer builds
#                    dsopt_internal, since the runtimes want to see the objects apart)
get_property(objects GLOBAL PROPERTY DSOPT_OBJECTS)
get_property(extra GLOBAL PROPERTY DSOPT_EXTRA_OBJECTS)
find_package(Threads REQUIRED)
set(system_libraries m Threads::Threads ${CMAKE_DL_LIBS})

add_library(dsopt_internal STATIC ${objects} ${extra})
set_target_properties(dsopt_internal PROPERTIES LINKER_LANGUAGE C)
target_link_libraries(dsopt_internal PUBLIC ${system_libraries})

add_library(dsopt_shared SHARED ${objects} ${extra})
set_target_properties(dsopt_shared PROPERTIES OUTPUT_NAME dsopt LINKER_LANGUAGE C
                      VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
                      LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/dsopt.map")
target_link_options(dsopt_shared PRIVATE -Wl,-z,text -Wl,-z,relro -Wl,-z,now
                    "-Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/dsopt.map")
target_link_libraries(dsopt_shared PRIVATE ${system_libraries})

# Two makes of one file at once would meet in the middle: a target makes it first.
add_dependencies(dsopt_internal dsopt_libtcc_local)
add_dependencies(dsopt_shared dsopt_libtcc_local)

add_library(dsopt INTERFACE)
target_include_directories(dsopt INTERFACE "${PROJECT_SOURCE_DIR}/runtime")
if(DSOPT_SANITIZE)
    target_link_libraries(dsopt INTERFACE dsopt_internal)
else()
    set(whole "${PROJECT_BINARY_DIR}/lib/dsopt.o")
    set(archive "${PROJECT_BINARY_DIR}/lib/libdsopt.a")
    add_custom_command(
        OUTPUT "${archive}"
        COMMAND "${CMAKE_LINKER}" -r -o "${whole}" --whole-archive $<TARGET_FILE:dsopt_internal>
        COMMAND "${CMAKE_OBJCOPY}" -w "--keep-global-symbol=dsopt_*" "${whole}"
        COMMAND "${CMAKE_COMMAND}" -E rm -f "${archive}"
        COMMAND "${CMAKE_AR}" rcs "${archive}" "${whole}"
        COMMAND "${CMAKE_COMMAND}" -E rm -f "${whole}"
        DEPENDS dsopt_internal
        COMMENT "Building lib/libdsopt.a"
        VERBATIM)
    add_custom_target(dsopt_archive ALL DEPENDS "${archive}")
    add_dependencies(dsopt dsopt_archive)
    target_link_libraries(dsopt INTERFACE "${archive}" ${system_libraries})
    set(DSOPT_ARCHIVE "${archive}")
endif()
