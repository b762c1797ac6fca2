# SPDX-License-Identifier: Apache-2.0
"""r.py - R: vectors, data frames, plots, errors, files."""
from case import Case, bash, r


def case(name, *steps, **more):
    return Case(name, *steps, needs="Rscript", **more)


CASES = [
    case("vectors", r("""
            x <- c(1, 2, 3)
            mean(x)""", result="[1] 2"), r("x * 2", result="[1] 2 4 6"), quick=True),
    case("cat and print", r("cat('hello\\n'); print(1:3); invisible(5)", out="hello\n[1] 1 2 3\n")),
    case("data frame", r("""
            df <- data.frame(g = c('a', 'b', 'a'), n = 1:3)
            aggregate(n ~ g, df, sum)""", result="  g n\n1 a 4\n2 b 2")),
    case("apply family", r("sapply(1:3, function(i) i^2)", result="[1] 1 4 9"), r("Reduce(`+`, lapply(1:4, identity))", result="[1] 10")),
    case("plot is a picture", r("plot(1:10, main = 'T')", mime="image/png", pictures=1)),
    case("histogram and lines", r("hist(c(1, 2, 2, 3)); plot(1:3); lines(3:1)", pictures=2)),
    case("png of the user's own", r("png('p.png'); plot(1); dev.off(); file.size('p.png') > 1000", result="[1] TRUE")),
    case("error names the call", r("""
            f <- function(x) stop('broken: ', x)
            f(3)""", code=1, error="broken: 3", traceback="f(3)"), r("1 + 1", result="[1] 2")),
    case("parse error", r("x <- (1 +", code=1, error="parse")),
    case("tryCatch and warnings", r("tryCatch(stop('x'), error = function(e) conditionMessage(e))", result='[1] "x"'),
         r("as.numeric('a')", result="[1] NA", err="NAs introduced")),
    case("csv both ways",
         r("write.csv(data.frame(a = 1:2), 't.csv', row.names = FALSE); sum(read.csv('t.csv')$a)", result="[1] 3", files={"t.csv": '"a"\n1\n2\n'})),
    case("linear model", r("""
            fit <- lm(mpg ~ wt, data = mtcars)
            round(unname(coef(fit)), 2)""", result="[1] 37.29 -5.34")),
    case("strings and regular expressions", r("gsub('(\\\\w+)@', '<\\\\1>', 'me@x'); sprintf('%05.2f', pi); toupper('é')", result='[1] "É"')),
    case("matrix", r("m <- matrix(1:4, 2); solve(m) %*% m", result="     [,1] [,2]\n[1,]    1    0\n[2,]    0    1")),
    case("seed", r("set.seed(1); length(rnorm(5))", result="[1] 5")),
    case("lists and str", r("str(list(a = 1, b = 'x'))", out='List of 2\n $ a: num 1\n $ b: chr "x"\n')),
    case("system", r("""
            system('echo child')
            system2('printf', 'x', stdout = TRUE)""", shows="child", result='[1] "x"')),
    case("files are shared", r("writeLines('from R', 'r.txt')"), bash("cat r.txt; Rscript -e 'cat(6*7)'", out="from R\n42")),
    case("missing package", r("library(nosuchpackage)", code=1, error="nosuchpackage")),
    case("quit", r("quit(status = 3)", code=3, status="error")),
]
