SELECT icu_sort_key('Straße', 'de-u-ks-level1') = icu_sort_key('strasse', 'de-u-ks-level1'), icu_compare('a', 'B', 'en');
SELECT * FROM icu_sentence_boundaries('One. Two! Three?', 'en');
SELECT icu_transform('Ελλάδα', 'Any-Latin'), icu_normalize('é', 'NFD') = 'é', icu_number_spellout(1234, 'en');
SELECT string_agg(contents, '|') FROM icu_word_boundaries('The quick (brown) fox', 'en');
