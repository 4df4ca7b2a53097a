#compdef forewarn
# Completion of forewarn for zsh. The program answers, so that names of machines, hosts and events are completed, too.
_forewarn() {
    local -a lines values directories
    local line
    lines=("${(@f)$(forewarn complete zsh --index $((CURRENT - 1)) -- "${(@Q)words}" 2>/dev/null)}")
    for line in "${lines[@]}"; do
        case "$line" in
            '') ;;
            */) directories+=("${line%/}") ;;
            *) values+=("$line") ;;
        esac
    done
    (( ${#values} )) && _describe -V 'forewarn' values
    (( ${#directories} )) && _describe -V 'directory' directories -S '/' -r '/'
    return 0
}
if [[ "${funcstack[1]}" == "_forewarn" ]]; then
    _forewarn "$@"
else
    compdef _forewarn forewarn
fi
