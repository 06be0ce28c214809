# The CMake package, read by find_package(Permafrost). It defines
#
#   Permafrost::runtime               the runtime, as a shared library
#   Permafrost::runtime_static        the same, as a static library
#   Permafrost::runtime_small         the runtime without delegates, with the formats of shipped models only
#   Permafrost::runtime_small_static  the same, as a static library
#   Permafrost::permafrost            the tools, as an executable
#
# and the functions of PermafrostModels.cmake.

get_filename_component(_permafrost_folder "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
# The folder of the libraries is lib, or one in it with the name of the processor.
get_filename_component(_permafrost_prefix "${_permafrost_folder}/.." ABSOLUTE)
if(NOT EXISTS "${_permafrost_prefix}/include/permafrost_runtime.h" AND
   EXISTS "${_permafrost_prefix}/../include/permafrost_runtime.h")
  get_filename_component(_permafrost_prefix "${_permafrost_prefix}/.." ABSOLUTE)
endif()

foreach(_permafrost_library IN ITEMS runtime runtime_small)
  set(_permafrost_file "${_permafrost_folder}/libpermafrost_${_permafrost_library}")
  if(NOT TARGET Permafrost::${_permafrost_library})
    add_library(Permafrost::${_permafrost_library} SHARED IMPORTED)
    set_target_properties(Permafrost::${_permafrost_library} PROPERTIES
      IMPORTED_LOCATION "${_permafrost_file}.so.1"
      IMPORTED_SONAME "libpermafrost_${_permafrost_library}.so.1"
      INTERFACE_INCLUDE_DIRECTORIES "${_permafrost_prefix}/include")
  endif()
  if(NOT TARGET Permafrost::${_permafrost_library}_static)
    # Further flags of the linker, one per line.
    file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/permafrost_${_permafrost_library}.linkopts" _permafrost_flags)
    add_library(Permafrost::${_permafrost_library}_static STATIC IMPORTED)
    set_target_properties(Permafrost::${_permafrost_library}_static PROPERTIES
      IMPORTED_LOCATION "${_permafrost_file}.a"
      IMPORTED_LINK_INTERFACE_LANGUAGES CXX
      INTERFACE_LINK_LIBRARIES "${_permafrost_flags};-lstdc++;-lm"
      INTERFACE_INCLUDE_DIRECTORIES "${_permafrost_prefix}/include")
  endif()
endforeach()

if(NOT TARGET Permafrost::permafrost)
  add_executable(Permafrost::permafrost IMPORTED)
  set_target_properties(Permafrost::permafrost PROPERTIES IMPORTED_LOCATION "${_permafrost_prefix}/bin/permafrost")
endif()

# Detects an incomplete copy of the package here instead of at link time.
foreach(_permafrost_needed IN ITEMS "${_permafrost_prefix}/bin/permafrost"
        "${_permafrost_prefix}/include/permafrost_runtime.h"
        "${_permafrost_folder}/libpermafrost_runtime.so.1" "${_permafrost_folder}/libpermafrost_runtime.a"
        "${_permafrost_folder}/libpermafrost_runtime_small.so.1" "${_permafrost_folder}/libpermafrost_runtime_small.a")
  if(NOT EXISTS "${_permafrost_needed}")
    set(Permafrost_FOUND FALSE)
    set(Permafrost_NOT_FOUND_MESSAGE "'${_permafrost_needed}' is missing: install Permafrost again")
  endif()
endforeach()

include("${CMAKE_CURRENT_LIST_DIR}/PermafrostModels.cmake")

unset(_permafrost_folder)
unset(_permafrost_prefix)
unset(_permafrost_library)
unset(_permafrost_file)
unset(_permafrost_flags)
unset(_permafrost_needed)
