package guide_test

import "flag"

var update = flag.Bool("update", false, "write the generated parts of the pages again")
