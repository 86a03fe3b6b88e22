SELECT house_num, name, suftype, city, state, postcode FROM standardize_address('us_lex', 'us_gaz', 'us_rules', '1 Devonshire Place', 'Boston, MA 02109');
SELECT * FROM parse_address('123 Main Street, Kansas City, MO 45678');
