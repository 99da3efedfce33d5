# What `cmake --install` puts where: dsoptc, the header, both libraries, a pkg-config file and a CMake
# package (find_package(dsopt) gives dsopt::dsopt, shared, and dsopt::static).
install(FILES "${PROJECT_SOURCE_DIR}/runtime/dsopt.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(TARGETS dsopt_shared LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
if(NOT DSOPT_SANITIZE)
    install(FILES "${DSOPT_ARCHIVE}" DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/dsopt")
set(generated "${PROJECT_BINARY_DIR}/package")
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
