# What `cmake --install` puts where: dsoptc, the header, both libraries, a pkg-config file, a CMake
# package (find_package(dsopt) gives dsopt::dsopt, shared, and dsopt::static), and the licences.
install(FILES "${PROJECT_SOURCE_DIR}/runtime/dsopt.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(TARGETS dsopt_shared LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
if(NOT DSOPT_SANITIZE)
    install(FILES "${DSOPT_ARCHIVE}" DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/dsopt")
set(generated "${PROJECT_BINARY_DIR}/package")
# Folders are told from where the file lies: `cmake --install --prefix` may put it anywhere.
file(RELATIVE_PATH pc_up "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" pc_up "${pc_up}")
set(pc_prefix "\${pcfiledir}/${pc_up}")
foreach(dir LIB INCLUDE)
    string(TOLOWER ${dir} lower)
    set(pc_${lower}dir "\${prefix}/${CMAKE_INSTALL_${dir}DIR}")
    if(IS_ABSOLUTE "${CMAKE_INSTALL_${dir}DIR}")
        set(pc_${lower}dir "${CMAKE_INSTALL_${dir}DIR}")
    endif()
endforeach()
configure_file("${CMAKE_CURRENT_LIST_DIR}/dsopt.pc.in" "${generated}/dsopt.pc" @ONLY)
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/dsoptConfig.cmake.in"
                              "${generated}/dsoptConfig.cmake"
                              INSTALL_DESTINATION "${package_dir}"
                              PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
# Until 1.0 a minor version may change anything.
write_basic_package_version_file("${generated}/dsoptConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${generated}/dsopt.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
install(FILES "${generated}/dsoptConfig.cmake" "${generated}/dsoptConfigVersion.cmake"
        DESTINATION "${package_dir}")

install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
find_file(DSOPT_LIBTCC_LICENCE copyright PATHS /usr/share/doc/libtcc-dev NO_DEFAULT_PATH
          DOC "The licence of libtcc, installed beside LICENSE")
if(DSOPT_LIBTCC_LICENCE)
    install(FILES "${DSOPT_LIBTCC_LICENCE}" DESTINATION "${CMAKE_INSTALL_DOCDIR}" RENAME LICENSE.libtcc)
endif()
