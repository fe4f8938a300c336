"""Drop-ins for the programs of LIBSVM and LIBLINEAR: their options, files, final lines and exit codes."""
