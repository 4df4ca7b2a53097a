# Completion of forewarn for bash. The program answers, so that names of machines, hosts and events are completed, too.
_forewarn() {
    local candidate
    COMPREPLY=()
    while IFS= read -r candidate; do
        COMPREPLY+=("$candidate")
    done < <(forewarn complete bash --index "$COMP_CWORD" --line "${COMP_LINE:0:COMP_POINT}" -- "${COMP_WORDS[@]}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/:] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o nosort -F _forewarn forewarn 2>/dev/null || complete -F _forewarn forewarn
