# Read by bash before each command: when the command ends, its folder is told to Midturn.
trap 'pwd -P 2>/dev/null >&'"$MIDTURN_FOLDER_PIPE" EXIT
unset BASH_ENV MIDTURN_FOLDER_PIPE
