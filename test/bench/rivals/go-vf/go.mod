module govf

go 1.22
