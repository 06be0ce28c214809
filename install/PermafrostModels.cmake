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
