# Completion of forewarn for fish. The program answers, so that names of machines, hosts and events are completed, too.
complete --command forewarn --no-files --keep-order --arguments '(forewarn complete fish -- (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token --cut-at-cursor) 2>/dev/null)'
