# Run by cpack before it packs: every file of the staged tree gets the time that SOURCE_DATE_EPOCH says, so that the same files make
# the same bytes. Without the variable times stay as they are.
if(DEFINED ENV{SOURCE_DATE_EPOCH})
  execute_process(COMMAND find ${CPACK_TEMPORARY_INSTALL_DIRECTORY} -exec touch -h -d @$ENV{SOURCE_DATE_EPOCH} {} +
    COMMAND_ERROR_IS_FATAL ANY)
endif()
