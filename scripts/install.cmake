# Installs everything besides the program: the library for find_package(foretrace), manuals, completion, samples; and makes the packages.

# The library. Programs link foretrace::foretrace, which contains all modules up to the one that answers questions.
get_property(library_modules GLOBAL PROPERTY foretrace_modules)
list(REMOVE_ITEM library_modules collect explorer cli)
set(library_targets ${library_modules})
list(TRANSFORM library_targets PREPEND foretrace_)
add_library(foretrace_library INTERFACE)
set_target_properties(foretrace_library PROPERTIES EXPORT_NAME foretrace)
target_link_libraries(foretrace_library INTERFACE foretrace_question foretrace_export)
install(TARGETS foretrace_library ${library_targets} EXPORT foretrace
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/foretrace)
install(EXPORT foretrace NAMESPACE foretrace:: FILE foretraceTargets.cmake DESTINATION ${config_folder} COMPONENT library)
install(DIRECTORY include/foretrace DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
include(CMakePackageConfigHelpers)
set(library_packages nlohmann-json3-dev zlib1g-dev libzstd-dev libsqlite3-dev libarchive-dev libre2-dev libssl-dev libxxhash-dev libexpat1-dev
  libyaml-dev libfmt-dev)
foreach(library isal glpk muparser)
  if(TARGET foretrace::${library})
    list(APPEND foretrace_built_with ${library})
    list(APPEND library_packages lib${library}-dev)
  endif()
endforeach()
configure_package_config_file(scripts/foretraceConfig.cmake.in ${CMAKE_BINARY_DIR}/generated/foretraceConfig.cmake
  INSTALL_DESTINATION ${config_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/foretraceConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/foretraceConfig.cmake ${CMAKE_BINARY_DIR}/generated/foretraceConfigVersion.cmake
  scripts/libraries.cmake DESTINATION ${config_folder} COMPONENT library)

# Manuals and completion, which the program writes itself.
set(manuals ${CMAKE_BINARY_DIR}/manuals)
add_custom_command(OUTPUT ${manuals}/stamp
  COMMAND ${CMAKE_COMMAND} -DEMULATOR=${CMAKE_CROSSCOMPILING_EMULATOR} -DPROGRAM=$<TARGET_FILE:foretrace> -DFOLDER=${manuals}
    -P ${PROJECT_SOURCE_DIR}/scripts/manuals.cmake
  DEPENDS foretrace scripts/manuals.cmake COMMENT "Writing manuals" VERBATIM)
add_custom_target(manuals ALL DEPENDS ${manuals}/stamp)
# Nothing else needs them, so a build of the program alone has none yet.
install(CODE "if(NOT EXISTS \"${manuals}/stamp\" OR \"$<TARGET_FILE:foretrace>\" IS_NEWER_THAN \"${manuals}/stamp\")
  execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND \"${CMAKE_COMMAND}\" \"-DEMULATOR=${CMAKE_CROSSCOMPILING_EMULATOR}\"
    \"-DPROGRAM=$<TARGET_FILE:foretrace>\" \"-DFOLDER=${manuals}\" -P \"${PROJECT_SOURCE_DIR}/scripts/manuals.cmake\")
endif()" COMPONENT program)
install(DIRECTORY ${manuals}/man1 ${manuals}/man7 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT program)
install(FILES ${manuals}/bash/foretrace DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT program)
install(FILES ${manuals}/zsh/_foretrace DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT program)
install(FILES ${manuals}/fish/foretrace.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program)

# The files that the README refers to.
install(FILES LICENSE README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(FILES src/document/vendor/uplot/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME LICENSE.uPlot COMPONENT program)
# Samples; the recordings behind the figures of accuracy take 46 MB and stay in the repository.
install(DIRECTORY traces scenarios DESTINATION ${CMAKE_INSTALL_DATADIR}/foretrace COMPONENT program
  REGEX "/ground_truth[_a-z0-9]*$" EXCLUDE)

# Packages: `cpack --config build/CPackConfig.cmake` puts them into build/packages.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/scripts/packages.cmake)
set(CPACK_PACKAGE_CONTACT "Foretrace developers <developers@foretrace.dev>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "predicts training times of neural networks from one trace")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program library)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME foretrace)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION devel)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION
  "Foretrace reads one recorded trace of a training job and says how long a step\n would take, and what memory it would need, if the job were changed.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libforetrace-dev)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libdevel)
list(JOIN library_packages ", " CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "The library of Foretrace: headers, static libraries and configuration for CMake.")
if(FORETRACE_PYTHON)
  list(APPEND CPACK_COMPONENTS_ALL python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-foretrace)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  math(EXPR next_minor "${Python3_VERSION_MINOR} + 1")  # The compiled module is of one Python.
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= 3.${Python3_VERSION_MINOR}~), python3 (<< 3.${next_minor})")
  set(CPACK_COMPONENT_PYTHON_DESCRIPTION "Foretrace as a Python module.")
endif()
include(CPack)
