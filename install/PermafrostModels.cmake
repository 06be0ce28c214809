# Functions for builds that ship models. A model is a file, or the name of a target that permafrost_optimized_model made;
# files are looked for in the source folder, like those of add_executable. All of them run when their inputs change.

# Sets ${file} to the path of the model, and ${dependency} to what a command that reads it depends on.
function(_permafrost_find_model model file dependency)
  if(TARGET ${model})
    get_target_property(path ${model} PERMAFROST_MODEL)
    if(NOT path)
      message(FATAL_ERROR "'${model}' is a target, but not of permafrost_optimized_model")
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
    message(FATAL_ERROR "${function}: found '${unparsed}', which is none of its arguments")
  endif()
endfunction()

# permafrost_ops_to_register(NAME MODELS model... [STYLE permafrost|tensorflow] [FLAGS flag...])
#
# Makes ops_to_register.h for the models, and an interface library NAME: what links it has the header on its include path.
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
  # Under another name first: a header of a tool that failed must not look like a new one.
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
# Runs transform_graph over the model; the result is OUT, ${CMAKE_CURRENT_BINARY_DIR}/NAME.pb where it is not given. Makes a
# target NAME, which is built with all others, and whose property PERMAFROST_MODEL is the path of the result.
function(permafrost_optimized_model name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SRC;OUT" "TRANSFORMS;INPUTS;OUTPUTS;FLAGS")
  _permafrost_check_arguments(permafrost_optimized_model "${arg_UNPARSED_ARGUMENTS}")
  if(NOT arg_SRC OR NOT arg_TRANSFORMS)
    message(FATAL_ERROR "permafrost_optimized_model(${name}): SRC and TRANSFORMS are needed")
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
# Makes a library NAME with the model as data of the program, and a header NAME.h that declares NAME and NAME_size; NAME is
# a name as C has them. The model becomes a memory-mapped package, whose tensors are used where they lie; with AS_IT_IS the
# file goes in byte for byte. PAGE_ALIGNED begins each tensor on a page of its own. FLAGS go to
# convert_graphdef_memmapped_format.
function(permafrost_model_object name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "AS_IT_IS;PAGE_ALIGNED" "MODEL" "FLAGS")
  _permafrost_check_arguments(permafrost_model_object "${arg_UNPARSED_ARGUMENTS}")
  if(NOT arg_MODEL)
    message(FATAL_ERROR "permafrost_model_object(${name}): MODEL is needed")
  endif()
  if(NOT name MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
    message(FATAL_ERROR "permafrost_model_object(${name}): the name is that of a symbol in C: letters, digits and '_'")
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
