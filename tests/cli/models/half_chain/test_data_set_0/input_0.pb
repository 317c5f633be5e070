
BinputJÍ>Í´f2ÍA