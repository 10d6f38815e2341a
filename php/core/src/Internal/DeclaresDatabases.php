<?php

declare(strict_types=1);

namespace Surus\Internal;

/**
 * The part of an application that declares databases.
 *
 * @internal
 */
trait DeclaresDatabases
{
    /**
     * Declares a database: each request that asks for a `PDO` gets a connection of its own, from its first use to its end. Then it is
     * rolled back, reset and used by the next request; `persistent_connections` limits how many are open in a worker.
     *
     *     $app->database('pgsql:host=db;dbname=shop', 'shop', getenv('PASSWORD'));
     *     $app->get('/products', fn (PDO $db) => $db->query('SELECT id, name FROM products')->fetchAll());
     *
     * Only connections to PostgreSQL, MySQL and MariaDB are kept. Those of other drivers are opened by each request.
     *
     * @param string $source as PDO's constructor takes it: "pgsql:host=…;dbname=…"
     * @param array<int, mixed> $options attributes of PDO; rows are arrays by name (FETCH_ASSOC), unless they say otherwise
     * @param string $service the service's name; a second database needs another one than PDO
     *
     * @throws \ValueError if there is no such driver
     */
    public function database(
        string $source,
        ?string $user = null,
        #[\SensitiveParameter] ?string $password = null,
        array $options = [],
        string $service = \PDO::class,
    ): static {
        $driver = strstr($source, ':', true);
        $drivers = class_exists(\PDO::class) ? \PDO::getAvailableDrivers() : [];
        if (!in_array($driver, $drivers, true)) {
            $known = $drivers === [] ? 'PHP has no drivers of PDO' : 'PHP has drivers for ' . implode(', ', $drivers);
            throw new \ValueError(($driver === false ? 'A source begins with the name of a driver, as in "pgsql:host=…"'
                : "There is no driver for \"$driver:\"") . ": $known");
        }
        $options += [
            \PDO::ATTR_DEFAULT_FETCH_MODE => \PDO::FETCH_ASSOC,
            \PDO::ATTR_PERSISTENT => in_array($driver, ['pgsql', 'mysql'], true),
        ];
        $this->scoped($service, static fn (): \PDO => new \PDO($source, $user, $password, $options));

        return $this;
    }
}
