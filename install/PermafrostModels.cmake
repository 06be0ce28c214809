# Functions for builds that ship models. A model is a file, or the name of a target created by
# permafrost_optimized_model. Files are relative to the source folder, as in add_executable. Outputs are rebuilt when
# their inputs change.

# Sets ${file} to the path of the model, and ${dependency} to the dependency of commands that read it.
function(_permafrost_find_model model file dependency)
  if(TARGET ${model})
    get_target_property(path ${model} PERMAFROST_MODEL)
    if(NOT path)
      message(FATAL_ERROR "'${model}' is a target that permafrost_optimized_model did not create")
    endif()
    set(${dependency} ${model} "${path}" PARENT_SCOPE)
  else()
    get_filename_component(path "${model}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    set(${dependency} "${path}" PARENT_SCOPE)
  endif()
  set(${file} "${path}" PARENT_SCOPE)
endfunction()

function(_permafrost_check_arguments function unparsed)
  if(unparsed)
    message(FATAL_ERROR "${function}: found '${unparsed}', which is not an argument of it")
  endif()
endfunction()

# permafrost_ops_to_register(NAME MODELS model... [STYLE permafrost|tensorflow] [FLAGS flag...])
#
# Generates ops_to_register.h for the models, and defines an interface library NAME that adds it to the include path.
function(permafrost_ops_to_register name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "STYLE" "MODELS;FLAGS")
  _permafrost_check_arguments(permafrost_ops_to_register "${arg_UNPARSED_ARGUMENTS}")
  if(NOT arg_MODELS)
    message(FATAL_ERROR "permafrost_ops_to_register(${name}): MODELS is empty")
  endif()
  if(NOT arg_STYLE)
    set(arg_STYLE permafrost)
  endif()
  set(graphs)
  set(dependencies)
  foreach(model IN LISTS arg_MODELS)
    _permafrost_find_model("${model}" file dependency)
    list(APPEND graphs "--graphs=${file}")
    list(APPEND dependencies ${dependency})
  endforeach()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${name}")
  set(header "${folder}/ops_to_register.h")
  file(MAKE_DIRECTORY "${folder}")
  # Written under a temporary name, so that the output of a failed tool is not taken for a current header.
  add_custom_command(
    OUTPUT "${header}"
    COMMAND Permafrost::permafrost print_selective_registration_header "--style=${arg_STYLE}" ${arg_FLAGS} ${graphs}
            > "${header}.new"
    COMMAND "${CMAKE_COMMAND}" -E rename "${header}.new" "${header}"
    DEPENDS ${dependencies} Permafrost::permafrost
    COMMENT "Finding the ops of ${name}"
    VERBATIM)
  add_custom_target(${name}_header DEPENDS "${header}")
  add_library(${name} INTERFACE)
  add_dependencies(${name} ${name}_header)
  target_include_directories(${name} INTERFACE "${folder}")
endfunction()

# permafrost_optimized_model(NAME SRC model TRANSFORMS pass... [INPUTS name...] [OUTPUTS name...] [OUT file] [FLAGS flag...])
#
# Runs transform_graph on the model and writes OUT, by default ${CMAKE_CURRENT_BINARY_DIR}/NAME.pb. Defines a target
# NAME, which is part of the default build and whose property PERMAFROST_MODEL is the path of the result.
function(permafrost_optimized_model name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SRC;OUT" "TRANSFORMS;INPUTS;OUTPUTS;FLAGS")
  _permafrost_check_arguments(permafrost_optimized_model "${arg_UNPARSED_ARGUMENTS}")
  if(NOT arg_SRC OR NOT arg_TRANSFORMS)
    message(FATAL_ERROR "permafrost_optimized_model(${name}): SRC and TRANSFORMS are required")
  endif()
  if(NOT arg_OUT)
    set(arg_OUT "${name}.pb")
  endif()
  get_filename_component(out "${arg_OUT}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
  _permafrost_find_model("${arg_SRC}" source dependency)
  list(JOIN arg_TRANSFORMS " " transforms)
  set(arguments "--in_graph=${source}" "--out_graph=${out}" "--transforms=${transforms}")
  foreach(kind IN ITEMS INPUTS OUTPUTS)
    if(arg_${kind})
      list(JOIN arg_${kind} "," names)
      string(TOLOWER ${kind} flag)
      list(APPEND arguments "--${flag}=${names}")
    endif()
  endforeach()
  add_custom_command(
    OUTPUT "${out}"
    COMMAND Permafrost::permafrost transform_graph ${arguments} ${arg_FLAGS} > "${out}.log"
    DEPENDS ${dependency} Permafrost::permafrost
    COMMENT "Optimising ${name}"
    VERBATIM)
  add_custom_target(${name} ALL DEPENDS "${out}")
  set_target_properties(${name} PROPERTIES PERMAFROST_MODEL "${out}")
endfunction()

# permafrost_model_object(NAME MODEL model [AS_IT_IS] [PAGE_ALIGNED] [FLAGS flag...])
#
# Defines a library NAME with the model as data, and generates a header NAME.h that declares the C symbols NAME and
# NAME_size. The model is converted to a memory-mapped package, whose tensors are used in place; with AS_IT_IS the file
# is included unchanged. PAGE_ALIGNED aligns each tensor to a page. FLAGS are passed to
# convert_graphdef_memmapped_format.
function(permafrost_model_object name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "AS_IT_IS;PAGE_ALIGNED" "MODEL" "FLAGS")
  _permafrost_check_arguments(permafrost_model_object "${arg_UNPARSED_ARGUMENTS}")
  if(NOT arg_MODEL)
    message(FATAL_ERROR "permafrost_model_object(${name}): MODEL is required")
  endif()
  if(NOT name MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
    message(FATAL_ERROR "permafrost_model_object(${name}): the name must be a C identifier: letters, digits and '_'")
  endif()
  _permafrost_find_model("${arg_MODEL}" file dependency)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${name}_model")
  file(MAKE_DIRECTORY "${folder}")
  set(alignment 64)
  if(arg_PAGE_ALIGNED)
    set(alignment 4096)
    list(APPEND arg_FLAGS --page_aligned)
  endif()
  if(NOT arg_AS_IT_IS)
    set(package "${folder}/${name}.pbmm")
    add_custom_command(
      OUTPUT "${package}"
      COMMAND Permafrost::permafrost convert_graphdef_memmapped_format "--in_graph=${file}" "--out_graph=${package}"
              ${arg_FLAGS} > "${package}.log"
      DEPENDS ${dependency} Permafrost::permafrost
      COMMENT "Packing ${name}"
      VERBATIM)
    set(file "${package}")
  endif()
  string(TOUPPER "${name}" guard)
  set(declarations "extern const unsigned char ${name}[];\nextern const size_t ${name}_size;\n")
  file(GENERATE OUTPUT "${folder}/${name}.h" CONTENT
"/* The model ${name}, as a part of the program. */
#ifndef PERMAFROST_MODEL_${guard}_H_
#define PERMAFROST_MODEL_${guard}_H_

#include <stddef.h>

#ifdef __cplusplus
extern \"C\" {
#endif

/* ${name}_size bytes, at a multiple of ${alignment}. */
${declarations}
#ifdef __cplusplus
}
#endif

#endif
")
  file(GENERATE OUTPUT "${folder}/${name}.c" CONTENT
"/* The bytes of a file, in read-only memory. */
#include <stddef.h>

__asm__(
    \".section .rodata.permafrost_model.${name},\\\"a\\\"\\n\"
    \".balign ${alignment}\\n\"
    \".globl ${name}\\n\"
    \".hidden ${name}\\n\"
    \".type ${name}, STT_OBJECT\\n\"
    \"${name}:\\n\"
    \".incbin \\\"${file}\\\"\\n\"
    \".L${name}_end:\\n\"
    \".size ${name}, .L${name}_end - ${name}\\n\"
    \".balign 8\\n\"
    \".globl ${name}_size\\n\"
    \".hidden ${name}_size\\n\"
    \"${name}_size:\\n\"
    \".quad .L${name}_end - ${name}\\n\"
    \".text\\n\");
")
  add_library(${name} STATIC "${folder}/${name}.c")
  set_source_files_properties("${folder}/${name}.c" PROPERTIES OBJECT_DEPENDS "${file}")
  target_include_directories(${name} INTERFACE "${folder}")
endfunction()
