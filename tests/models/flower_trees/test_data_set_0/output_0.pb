2
versicolor2
versicolor2
versicolor2
versicolor2setosaBlabel