<?php

/** HTTP: curl, SOAP, streams, with and without TLS. */

declare(strict_types=1);

function echoUrl(Exchange $exchange, string $word): string
{
    return 'http://127.0.0.1:' . port('HTTP') . "/?word={$word}&delay={$exchange->delay}";
}

/** Over TLS nothing but the proxy takes time. */
function tlsUrl(string $word): string
{
    return 'https://127.0.0.1:' . port('TLS') . "/?word={$word}";
}

/** The text of an answer: PHP's own client does not say that one has come to an early end. */
function fetch(string $url): string
{
    $context = stream_context_create(['ssl' => ['verify_peer' => false, 'verify_peer_name' => false]]);
    $text = expect(file_get_contents($url, false, $context), 'file_get_contents');
    if (!in_array('Content-Length: ' . strlen($text), $http_response_header, true)) {
        throw new RuntimeException('the answer is not whole');
    }

    return $text;
}

function curlTalk(CurlHandle $curl, Exchange $exchange, Closure $url): void
{
    for ($i = 0; $i < 3; $i++) {
        curl_setopt_array($curl, [
            CURLOPT_URL => $url($exchange->word()),
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_SSL_VERIFYPEER => false,
            CURLOPT_SSL_VERIFYHOST => 0,
        ]);
        $text = curl_exec($curl);
        if ($text === false) {
            throw new RuntimeException(curl_error($curl));
        }
        $exchange->hear($text);
    }
}

function soapTalk(SoapClient $client, Exchange $exchange): void
{
    for ($i = 0; $i < 2; $i++) {
        $exchange->hear($client->__soapCall('repeat', [$exchange->word()]));
    }
}

function soapClient(): SoapClient
{
    return new SoapClient(null, [
        'location' => 'http://127.0.0.1:' . port('HTTP') . '/soap',
        'uri' => 'urn:adversary',
        'keep_alive' => true,
    ]);
}

return [
    'curl' => static function (Exchange $exchange): void {
        curlTalk(curl_init(), $exchange, static fn (string $word): string => echoUrl($exchange, $word));
    },
    'curl_tls' => static fn (Exchange $exchange) => curlTalk(curl_init(), $exchange, tlsUrl(...)),
    'curl_multi' => static function (Exchange $exchange): void {
        $multi = curl_multi_init();
        $handles = [];
        for ($i = 0; $i < 3; $i++) {
            $handles[$i] = curl_init(echoUrl($exchange, $exchange->word()));
            curl_setopt($handles[$i], CURLOPT_RETURNTRANSFER, true);
            curl_multi_add_handle($multi, $handles[$i]);
        }
        do {
            $status = curl_multi_exec($multi, $running);
            if ($running) {
                curl_multi_select($multi, 10.0);
            }
        } while ($running && $status === CURLM_OK);
        while ($done = curl_multi_info_read($multi)) {
            if ($done['result'] !== CURLE_OK) {
                throw new RuntimeException('curl_multi: ' . curl_strerror($done['result']));
            }
        }
        foreach ($handles as $handle) {
            $exchange->hear(curl_multi_getcontent($handle));
        }
    },
    'curl_shared' => static function (Exchange $exchange): void {
        static $curl = null;
        $curl ??= curl_init();
        curlTalk($curl, $exchange, static fn (string $word): string => echoUrl($exchange, $word));
    },
    'soap' => static fn (Exchange $exchange) => soapTalk(soapClient(), $exchange),
    'soap_shared' => static function (Exchange $exchange): void {
        static $client = null;
        $client ??= soapClient();
        soapTalk($client, $exchange);
    },
    'stream' => static function (Exchange $exchange): void {
        for ($i = 0; $i < 2; $i++) {
            $exchange->hear(fetch(echoUrl($exchange, $exchange->word())));
        }
    },
    'stream_tls' => static function (Exchange $exchange): void {
        for ($i = 0; $i < 2; $i++) {
            $exchange->hear(fetch(tlsUrl($exchange->word())));
        }
    },
];
