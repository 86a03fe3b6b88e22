SELECT urlencode('a b&c'), text_to_bytea('x'), http_header('A', 'b');
SELECT http_set_curlopt('CURLOPT_TIMEOUT', '1');
