<?php

/** The ldap extension: what is searched is a user whose password only its own request has set. */

declare(strict_types=1);

function ldapLink(): LDAP\Connection
{
    $link = expect(ldap_connect('ldap://127.0.0.1:' . port('LDAP')), 'ldap_connect');
    ldap_set_option($link, LDAP_OPT_PROTOCOL_VERSION, 3);
    ldap_set_option($link, LDAP_OPT_NETWORK_TIMEOUT, 10);
    expect(ldap_bind($link, 'cn=admin,dc=surus,dc=test', 'elephant'), 'ldap_bind');

    return $link;
}

function ldapTalk(LDAP\Connection $link, Exchange $exchange): void
{
    for ($i = 0; $i < 2; $i++) {
        $word = $exchange->word();
        $name = "cn={$word},dc=surus,dc=test";
        $added = ldap_add($link, $name, ['objectClass' => 'person', 'cn' => $word, 'sn' => $word]);
        expect($added, 'ldap_add: ' . ldap_error($link));
        $found = expect(ldap_search($link, 'dc=surus,dc=test', "(cn={$word})", ['sn']), 'ldap_search');
        $entries = ldap_get_entries($link, $found);
        expect(ldap_delete($link, $name), 'ldap_delete');
        $exchange->hear($entries[0]['sn'][0] ?? null);
    }
}

return [
    'search' => static function (Exchange $exchange): void {
        $link = ldapLink();
        ldapTalk($link, $exchange);
        ldap_unbind($link);
    },
    'shared' => static function (Exchange $exchange): void {
        static $link = null;
        try {
            $link ??= ldapLink();
            ldapTalk($link, $exchange);
        } catch (RuntimeException $error) {
            $link = null;
            throw $error;
        }
    },
];
