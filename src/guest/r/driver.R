# SPDX-License-Identifier: Apache-2.0
# driver.R - The R kernel: runs code in one R process that lives on, and exchanges JSON lines with the host.
# `Rscript --vanilla driver.R`.
#
# Theory of operation
#
# Goals: the behaviour of the R console, with base R alone. Code is parsed whole, then each expression is
# evaluated in the global environment. Visible values are printed to 1 as the console does, except the value of
# the last expression: that is the result, and is not printed.
#
# Descriptors: R can open files but not use a descriptor it inherited, and only the user who made a pipe may
# open /dev/fd/3 again. So two `cat` processes carry the control channel (they
# ignore SIGINT), and 3 and 4 are closed here, by a function of the `parallel` package that is not exported;
# where it is missing they stay open. R has no close-on-exec: programs that the code starts inherit the
# pipes to the two `cat`s.
#
# Output: R flushes its output to 1 and 2 at once, so text and the output of system() are in order. R flushes
# the buffers of C libraries when it can; the driver does not.
#
# Plots: the option `device` opens a PNG device (cairo, no X11) in the session's temporary directory when
# the code draws without one. At the end of the execution it is closed and each page is sent as a display.
# Without cairo it is PDF.
#
# Base functions that are replaced in the base package itself, so that every caller finds them: q and quit
# (end the execution, not R, by a restart that no handler sees), readline and readLines(stdin()) (ask the
# host), warnings.
#
# Warnings are collected as the console does and written to 2 after each top-level expression;
# getOption("warn") is obeyed.
#
# SIGINT: the driver runs with interrupts suspended, the code with interrupts allowed. A signal between
# executions is dropped before the code starts. While system() runs, C ignores the signal in R: the command
# ends, R continues. While readline() waits for an answer, the signal is handled when the answer comes.
#
# Failure model: end of file on control in ends R at once. R reads its script from the file of `Rscript`,
# and so would scan(""): main() is called on the last line, so that nothing is left to read.

.caisson <- local({
	BUNDLE_MAX_BYTES <- 8 * 1024^2
	TEXT_MAX_CHARS <- 1024^2
	PLOT <- list(width = 840, height = 600, res = 120)

	state <- new.env()
	real_quit <- base::quit
	real_readLines <- base::readLines

	# --- JSON, as much of it as the messages need

	# The escapes of all control characters but those that have a short one.
	controls <- setdiff(1:31, c(9L, 10L, 13L))

	json_string <- function(x) {
		x <- enc2utf8(paste(as.character(x), collapse = "\n"))
		if (!validUTF8(x)) x <- iconv(x, "UTF-8", "UTF-8", sub = "\ufffd")
		x <- gsub("\\", "\\\\", x, fixed = TRUE)
		x <- gsub("\"", "\\\"", x, fixed = TRUE)
		x <- gsub("\n", "\\n", x, fixed = TRUE)
		x <- gsub("\r", "\\r", x, fixed = TRUE)
		x <- gsub("\t", "\\t", x, fixed = TRUE)
		if (grepl("[\001-\037]", x, perl = TRUE)) {
			for (c in controls) x <- gsub(intToUtf8(c), sprintf("\\u%04x", c), x, fixed = TRUE)
		}
		paste0("\"", x, "\"")
	}

	# Named list to object, unnamed list to array, NULL to null; strings, numbers, logicals. `I("...")`
	# is JSON already.
	json <- function(x) {
		if (is.null(x)) return("null")
		if (inherits(x, "AsIs")) return(unclass(x))
		if (is.list(x)) {
			items <- vapply(x, json, "")
			if (is.null(names(x))) return(paste0("[", paste(items, collapse = ","), "]"))
			return(paste0("{", paste0(vapply(names(x), json_string, ""), ":", items, collapse = ","), "}"))
		}
		if (is.logical(x)) return(if (x) "true" else "false")
		if (is.numeric(x)) return(format(x, scientific = FALSE, digits = 15))
		json_string(x)
	}

	# The string members of a JSON object. All in vectors of bytes, because a line may have megabytes:
	# mark the characters that a backslash escapes; the remaining quotes delimit the strings.
	parse_message <- function(line) {
		x <- as.integer(charToRaw(line))
		n <- length(x)
		at <- seq_len(n)
		slash <- x == 92L
		escaped <- logical(n)
		if (any(slash)) {
			# Odd places in a run of backslashes escape what follows.
			run <- at - cummax(ifelse(slash, 0L, at))
			first <- slash & run %% 2L == 1L
			escaped[which(first) + 1L] <- TRUE
			slash <- first
			escaped <- escaped[at]
		}
		quotes <- which(x == 34L & !escaped)
		result <- list()
		opening <- quotes[c(TRUE, FALSE)]
		closing <- quotes[c(FALSE, TRUE)]
		between <- function(i) {
			from <- if (i == 1L) 1L else closing[i - 1L] + 1L
			to <- if (i > length(opening)) n else opening[i] - 1L
			if (from > to) "" else rawToChar(as.raw(x[from:to]))
		}
		depth <- 0L
		is_value <- FALSE
		for (i in seq_along(opening)) {
			if (i > 200L) break
			gap <- between(i)
			depth <- depth + nchar(gsub("[^[{]", "", gap)) - nchar(gsub("[^]}]", "", gap))
			if (is_value && depth == 1L && trimws(gap) == ":") {
				result[[key]] <- decode(x, escaped, slash, opening[i] + 1L, closing[i] - 1L)
				is_value <- FALSE
			} else if (depth == 1L) {
				key <- decode(x, escaped, slash, opening[i] + 1L, closing[i] - 1L)
				# Only these are looked at; a boolean is a string here.
				is_value <- key %in% c("type", "id", "code", "name", "value", "error")
				if (key == "eof") result$eof <- grepl("^\\s*:\\s*true", between(i + 1L))
			}
		}
		result
	}

	simple_escapes <- c("98" = 8L, "102" = 12L, "110" = 10L, "114" = 13L, "116" = 9L)

	# The bytes from..to of a string, escapes resolved.
	decode <- function(x, escaped, slash, from, to) {
		if (is.na(to) || from > to) return("")
		range <- from:to
		bytes <- x[range]
		escaped <- escaped[range]
		slash <- slash[range]
		mapped <- simple_escapes[as.character(bytes[escaped])]
		unicode <- which(escaped & bytes == 117L)
		bytes[escaped][!is.na(mapped)] <- mapped[!is.na(mapped)]
		keep <- !slash
		if (length(unicode) > 0L) {
			hex <- matrix(bytes[outer(0L:3L, unicode + 1L, `+`)], nrow = 4L)
			digit <- ifelse(hex >= 97L, hex - 87L, ifelse(hex >= 65L, hex - 55L, hex - 48L))
			code <- as.integer(c(4096, 256, 16, 1) %*% digit)
			high <- code >= 0xD800 & code < 0xDC00
			low <- code >= 0xDC00 & code < 0xE000
			k <- length(code)
			pair <- which(high[-k] & low[-1L] & diff(unicode) == 6L)
			code[pair] <- 0x10000L + (code[pair] - 0xD800L) * 1024L + (code[pair + 1L] - 0xDC00L)
			code[setdiff(which(high | low), c(pair, pair + 1L))] <- 0xFFFDL
			code[pair + 1L] <- NA
			code[!is.na(code) & code == 0L] <- 0xFFFDL
			# Each escape shrinks to one mark, and the text is put together from what lies between the marks.
			for (d in 1:4) keep[unicode + d] <- FALSE
			keep[unicode] <- FALSE
			piece <- cumsum(seq_along(bytes) %in% unicode)
			texts <- split(as.raw(bytes[keep]), factor(piece[keep], levels = 0:k))
			texts <- vapply(texts, rawToChar, "", USE.NAMES = FALSE)
			chars <- ifelse(is.na(code), "", vapply(code, intToUtf8, ""))
			text <- paste0(texts, c("", chars)[c(seq_len(k) + 1L, 1L)], collapse = "")
		} else {
			text <- rawToChar(as.raw(bytes[keep]))
		}
		Encoding(text) <- "UTF-8"
		text
	}

	base64 <- function(bytes) {
		alphabet <- c(LETTERS, letters, 0:9, "+", "/")
		n <- length(bytes)
		x <- matrix(as.integer(c(bytes, raw((-n) %% 3))), nrow = 3L)
		sextets <- rbind(
			bitwShiftR(x[1L, ], 2L),
			bitwOr(bitwShiftL(bitwAnd(x[1L, ], 3L), 4L), bitwShiftR(x[2L, ], 4L)),
			bitwOr(bitwShiftL(bitwAnd(x[2L, ], 15L), 2L), bitwShiftR(x[3L, ], 6L)),
			bitwAnd(x[3L, ], 63L)
		)
		out <- alphabet[sextets + 1L]
		pad <- (-n) %% 3
		if (pad > 0) out[length(out) + 1L - seq_len(pad)] <- "="
		paste(out, collapse = "")
	}

	# --- the channel

	leave <- function() real_quit("no", 0, FALSE)

	send <- function(message) {
		flush(stdout())
		tryCatch({
			writeLines(json(message), state$output, useBytes = TRUE)
			flush(state$output)
		}, error = function(e) leave())
	}

	# The next message of one of these types; others are dropped.
	receive <- function(types) {
		repeat {
			line <- suppressWarnings(tryCatch(real_readLines(state$input, 1L), error = function(e) character()))
			if (length(line) == 0L) leave()
			message <- tryCatch(parse_message(line), error = function(e) list())
			if (is.character(message$type) && message$type %in% types) return(message)
		}
	}

	open_channel <- function() {
		state$input <- pipe("trap '' INT; exec cat <&3 3<&- 4>&-", "rb")
		state$output <- pipe("trap '' INT; exec cat >&4 3<&- 4>&-", "wb")
		tryCatch(getNamespace("parallel")$closeFD(3:4), error = function(e) NULL)
	}

	bundle <- function(data, what) {
		text <- json(data)
		if (nchar(text, "bytes") <= BUNDLE_MAX_BYTES) return(I(text))
		list("text/plain" = sprintf("<%s too large: %d bytes>", what, nchar(text, "bytes")))
	}

	# The members of a message with a bundle; `truncated` if something was left out.
	bundled <- function(type, data, cut = FALSE) {
		data <- bundle(data, type)
		c(list(type = type, data = data, metadata = I("{}")), if (cut || is.list(data)) list(truncated = TRUE))
	}

	display <- function(data) {
		send(c(bundled("display", data), list(display_id = NULL, update = FALSE)))
		receive("ack")
	}

	ask <- function(prompt) {
		state$input_id <- state$input_id + 1L
		send(list(type = "input_request", id = state$input_id, prompt = prompt, password = FALSE))
		message <- suspendInterrupts(receive("input_response"))
		if (!is.null(message$error)) stop("no input: ", message$error, call. = FALSE)
		if (isTRUE(message$eof)) NULL else message$value
	}

	# --- functions of base that are replaced

	set_base <- function(name, value) {
		if (exists(name, baseenv(), inherits = FALSE)) unlockBinding(name, baseenv())
		assign(name, value, envir = baseenv())
	}

	replace_all <- function() {
		quit <- function(save = "default", status = 0, runLast = TRUE) invokeRestart("caisson_quit", status)
		readline <- function(prompt = "") {
			answer <- ask(prompt)
			if (is.null(answer)) "" else answer
		}
		readLines <- function(con = stdin(), n = -1L, ok = TRUE, warn = TRUE, encoding = "unknown", skipNul = FALSE) {
			if (!inherits(con, "terminal") || as.integer(con) != 0L) {
				return(real_readLines(con, n, ok, warn, encoding, skipNul))
			}
			lines <- character()
			while (n < 0L || length(lines) < n) {
				answer <- ask("")
				if (is.null(answer)) break
				lines <- c(lines, answer)
			}
			lines
		}
		# R keeps them in a variable of base that only C can make.
		warnings <- function(...) {
			if (length(state$last_warning)) structure(state$last_warning, dots = list(...), class = "warnings")
		}
		for (name in c("quit", "readline", "readLines", "warnings")) set_base(name, get(name, inherits = FALSE))
		set_base("q", quit)
	}

	# --- plots

	open_device <- function(...) {
		if (is.null(state$plots)) state$plots <- tempfile("plots")
		dir.create(state$plots, showWarnings = FALSE)
		if (isTRUE(capabilities("cairo"))) {
			grDevices::png(file.path(state$plots, "%04d.png"), PLOT$width, PLOT$height, res = PLOT$res, type = "cairo")
		} else {
			grDevices::pdf(file.path(state$plots, "%04d.pdf"), PLOT$width / PLOT$res, PLOT$height / PLOT$res, onefile = FALSE)
		}
		state$device <- grDevices::dev.cur()
	}

	send_plots <- function() {
		if (is.null(state$plots)) return()
		if (state$device %in% grDevices::dev.list()) grDevices::dev.off(state$device)
		for (file in sort(list.files(state$plots, full.names = TRUE))) {
			data <- base64(readBin(file, "raw", file.size(file)))
			kind <- if (endsWith(file, ".png")) "image/png" else "application/pdf"
			display(structure(list(data, "<plot>"), names = c(kind, "text/plain")))
		}
		unlink(state$plots, recursive = TRUE)
		state$plots <- NULL
	}

	# --- warnings and errors, worded as R words them

	# A call of the driver itself is not shown.
	own_call <- function(call) is.null(call) || identical(call[[1L]], quote(eval)) && any(all.names(call) %in% c(".caisson_expression"))

	with_call <- function(call, text, lead) {
		if (own_call(call)) return(if (lead == "In ") text else paste0(sub(" in $", "", lead), ": ", text))
		where <- deparse(call, nlines = 1L)[1L]
		sep <- if (nchar(where) + nchar(strsplit(paste0(text, "\n"), "\n")[[1L]][1L]) + 6L > 77L) " : \n  " else " : "
		paste0(lead, where, sep, text)
	}

	on_warning <- function(w) {
		level <- getOption("warn")
		if (!is.numeric(level)) level <- 0
		if (level >= 2) return()
		if (level == 1) {
			cat(with_call(conditionCall(w), conditionMessage(w), "Warning in "), "\n", sep = "", file = stderr())
		} else if (level == 0 && length(state$warnings) < 50L) {
			state$warnings[[length(state$warnings) + 1L]] <- w
		}
		invokeRestart("muffleWarning")
	}

	print_warnings <- function() {
		found <- state$warnings
		state$warnings <- list()
		if (length(found) == 0L) return()
		texts <- vapply(found, conditionMessage, "")
		last <- structure(lapply(found, function(w) if (!own_call(conditionCall(w))) conditionCall(w)), names = texts)
		state$last_warning <- last
		lines <- vapply(found, function(w) with_call(conditionCall(w), conditionMessage(w), "In "), "")
		if (length(found) == 1L) {
			out <- c("Warning message:", lines)
		} else if (length(found) <= 10L) {
			out <- c("Warning messages:", paste0(seq_along(lines), ": ", lines))
		} else {
			many <- if (length(found) < 50L) sprintf("There were %d warnings", length(found)) else "There were 50 or more warnings"
			out <- paste(many, if (length(found) < 50L) "(use warnings() to see them)" else "(use warnings() to see the first 50)")
		}
		cat(out, sep = "\n", file = stderr())
	}

	# The calls of the code between its own evaluation and the handler, innermost first.
	code_calls <- function(calls) {
		heads <- vapply(calls, function(c) if (is.symbol(c[[1L]])) as.character(c[[1L]]) else "", "")
		start <- which(heads == "caisson_evaluate")
		# caisson_evaluate, withVisible, eval, eval
		if (length(start) == 0L) return(list())
		first <- max(start) + 4L
		end <- which(heads %in% c(".handleSimpleError", ".signalSimpleWarning"))
		end <- end[end >= first]
		last <- if (length(end)) end[1L] - 1L else length(calls) - 1L
		if (first > last) list() else rev(calls[first:last])
	}

	describe_call <- function(i, call) {
		ref <- attr(call, "srcref")
		where <- if (is.null(ref)) "" else sprintf(" at %s#%d", basename(attr(ref, "srcfile")$filename), ref[1L])
		text <- deparse(call, nlines = 2L)
		sprintf("%d: %s%s%s", i, text[1L], if (length(text) > 1L) " ..." else "", where)
	}

	error_message <- function(e, calls) {
		text <- conditionMessage(e)
		lines <- with_call(conditionCall(e), text, "Error in ")
		if (length(calls) > 100L) calls <- c(calls[1:50], calls[length(calls) - 49:0])
		if (length(calls)) lines <- c(lines, mapply(describe_call, rev(seq_along(calls)), calls))
		list(type = "error", name = class(e)[1L], value = text, traceback = as.list(unlist(strsplit(lines, "\n"))))
	}

	# --- one execution

	caisson_evaluate <- function(.caisson_expression) withVisible(eval(.caisson_expression, globalenv()))

	show_value <- function(value) if (isS4(value)) methods::show(value) else print(value)

	# The printed lines of a value. Only the showing can be interrupted: with capture.output() an
	# interrupt between the start of its sink and the promise to end it would swallow all output ever after.
	capture_value <- function(value) {
		lines <- NULL
		depth <- sink.number()
		file <- textConnection("lines", "w", local = TRUE)
		end <- function() {
			while (sink.number() > depth) sink()
			close(file)
		}
		on.exit(end())
		sink(file)
		allowInterrupts(show_value(value))
		on.exit()
		end()
		lines
	}

	# All of the code; the last value as text, or NULL.
	run_code <- function(code, name) {
		lines <- strsplit(gsub("\r\n?", "\n", code), "\n", fixed = TRUE)[[1L]]
		expressions <- tryCatch(
			parse(text = lines, keep.source = TRUE, srcfile = srcfilecopy(name, lines), encoding = "UTF-8"),
			error = function(e) {
				class(e) <- c("parseError", class(e))
				e$call <- NULL
				stop(e)
			}
		)
		text <- NULL
		for (i in seq_along(expressions)) {
			got <- caisson_evaluate(expressions[[i]])
			set_base(".Last.value", got$value)
			if (got$visible) {
				if (i == length(expressions)) text <- suspendInterrupts(capture_value(got$value)) else show_value(got$value)
			}
			print_warnings()
		}
		text
	}

	execute <- function(message) {
		calls <- list()
		state$warnings <- list()
		name <- if (is.null(message$name)) "<sandbox>" else message$name
		code <- if (is.null(message$code)) "" else message$code
		# An interrupt that came while no code was running.
		tryCatch(allowInterrupts(Sys.sleep(0)), interrupt = function(e) NULL)
		outcome <- withRestarts(
			tryCatch(
				withCallingHandlers(
					list(status = "ok", exit_code = 0L, text = allowInterrupts(run_code(code, name))),
					error = function(e) calls <<- sys.calls(),
					warning = on_warning
				),
				error = function(e) list(status = "error", exit_code = 1L, error = e),
				interrupt = function(e) list(status = "interrupted", exit_code = 130L)
			),
			caisson_quit = function(status) {
				status <- suppressWarnings(as.integer(status)) %% 256L
				if (length(status) != 1L || is.na(status)) status <- 1L
				list(status = if (status == 0L) "ok" else "error", exit_code = status)
			}
		)
		tryCatch(print_warnings(), error = function(e) NULL)
		tryCatch(send_plots(), error = function(e) cat("plot: ", conditionMessage(e), "\n", sep = "", file = stderr()))
		if (!is.null(outcome$error)) {
			send(tryCatch(error_message(outcome$error, code_calls(calls)), error = function(e) {
				list(type = "error", name = "error", value = conditionMessage(e), traceback = list())
			}))
		} else if (outcome$status == "interrupted") {
			send(list(type = "error", name = "KeyboardInterrupt", value = "interrupted", traceback = list()))
		} else if (length(outcome$text)) {
			text <- paste(outcome$text, collapse = "\n")
			cut <- nchar(text) > TEXT_MAX_CHARS
			if (cut) {
				text <- sprintf("%s\n... cut, %d characters in all", substr(text, 1L, TEXT_MAX_CHARS), nchar(text))
			}
			send(bundled("result", list("text/plain" = text), cut))
		}
		send(list(type = "execution_done", id = message$id, status = outcome$status, exit_code = outcome$exit_code))
	}

	main <- function() {
		if (!isTRUE(l10n_info()[["UTF-8"]])) {
			for (locale in c("C.UTF-8", "en_US.UTF-8")) if (suppressWarnings(nzchar(Sys.setlocale("LC_CTYPE", locale)))) break
		}
		state$input_id <- 0L
		open_channel()
		replace_all()
		options(device = open_device, keep.source = TRUE, warn = 0)
		rm(".caisson", envir = globalenv())
		version <- paste(R.version$major, R.version$minor, sep = ".")
		send(list(type = "ready", language = "r", version = version, pid = Sys.getpid()))
		repeat execute(receive("execute"))
	}

	environment()
})
suspendInterrupts(.caisson$main())
