<?php

declare(strict_types=1);

namespace Surus\Internal;

/**
 * Finds connections in shared services: two requests on one connection would get each other's answers.
 *
 * @internal
 */
final class Connections
{
    /** The maximum depth of properties that are searched. */
    private const DEPTH = 5;

    /** The maximum number of objects that are searched: not the whole application. */
    private const OBJECTS = 2000;

    private const CLASSES = [
        \PDO::class, \PDOStatement::class, \mysqli::class, \mysqli_stmt::class, 'PgSql\Connection', 'LDAP\Connection', 'IMAP\Connection',
        'FTP\Connection', \Redis::class, \RedisCluster::class, \RedisArray::class, \RedisSentinel::class, \Memcached::class, \Memcache::class,
        \CurlHandle::class, \CurlMultiHandle::class, \SoapClient::class, \Socket::class, \AMQPConnection::class, 'MongoDB\Driver\Manager',
        'Doctrine\DBAL\Connection', 'Doctrine\DBAL\Driver\Connection', 'Doctrine\ORM\EntityManagerInterface',
        'Doctrine\Persistence\ObjectManager', 'Illuminate\Database\Capsule\Manager', 'Illuminate\Database\ConnectionInterface',
        'Illuminate\Database\ConnectionResolverInterface', 'Predis\ClientInterface', 'PhpAmqpLib\Connection\AbstractConnection',
    ];

    /** The connection that a class is, or has by its properties' types: "a PDO", "a PDO in Repository::$database". */
    public static function ofClass(string $class): ?string
    {
        $seen = [];

        return self::search($class, '', self::DEPTH, $seen);
    }

    /** The same for an object that is one itself: "a PDO". */
    public static function ofObject(object $object): ?string
    {
        $kind = self::kind($object::class);

        return $kind === null ? null : self::a($kind);
    }

    /** The same for an object, by the values of its properties. */
    public static function of(mixed $value): ?string
    {
        $queue = [[$value, '', self::DEPTH]];
        $seen = new \SplObjectStorage();
        while ($queue !== [] && count($seen) < self::OBJECTS) {
            [$value, $where, $depth] = array_shift($queue);
            if (is_array($value) && $depth > 0) {
                foreach (array_slice($value, 0, 100, true) as $item) {
                    if (is_object($item) || is_array($item)) {
                        $queue[] = [$item, $where, $depth - 1];
                    }
                }
            }
            if (!is_object($value) || isset($seen[$value])) {
                continue;
            }
            $seen[$value] = true;
            $kind = self::kind($value::class);
            if ($kind !== null) {
                return self::a($kind) . $where;
            }
            if ($depth === 0 || self::isOpaque($value)) {
                continue;
            }
            foreach ((array) $value as $name => $held) {
                if (is_object($held) || is_array($held)) {
                    // Names of private and protected properties have a prefix between two zero bytes.
                    $name = (string) $name;
                    $queue[] = [$held, $where ?: ' in ' . $value::class . '::$' . substr($name, (int) strrpos("\0$name", "\0")), $depth - 1];
                }
            }
        }

        return null;
    }

    /** @param array<string, true> $seen */
    private static function search(string $class, string $where, int $depth, array &$seen): ?string
    {
        if (isset($seen[$class]) || str_starts_with($class, 'Surus\\') || (!class_exists($class) && !interface_exists($class))) {
            return null;
        }
        $seen[$class] = true;
        $kind = self::kind($class);
        if ($kind !== null) {
            return self::a($kind) . $where;
        }
        $reflection = new \ReflectionClass($class);
        if ($depth === 0 || $reflection->isInternal() || is_a($class, \Closure::class, true)) {
            return null;
        }
        for ($owner = $reflection; $owner !== false; $owner = $owner->getParentClass()) {
            foreach ($owner->getProperties() as $property) {
                $place = $where ?: " in {$class}::\${$property->getName()}";
                foreach ($property->isStatic() ? [] : self::named($property->getType()) as $name) {
                    $found = self::search($name, $place, $depth - 1, $seen);
                    if ($found !== null) {
                        return $found;
                    }
                }
            }
        }

        return null;
    }

    /** @return list<string> */
    private static function named(?\ReflectionType $type): array
    {
        if ($type instanceof \ReflectionNamedType) {
            return $type->isBuiltin() || in_array($type->getName(), ['self', 'static', 'parent'], true) ? [] : [$type->getName()];
        }
        $names = [];
        if ($type instanceof \ReflectionUnionType || $type instanceof \ReflectionIntersectionType) {
            foreach ($type->getTypes() as $each) {
                array_push($names, ...self::named($each));
            }
        }

        return $names;
    }

    private static function kind(string $class): ?string
    {
        foreach (self::CLASSES as $connection) {
            if (is_a($class, $connection, true)) {
                return $class;
            }
        }

        return null;
    }

    /** Objects that are not searched: they separate requests themselves, or are not a service's state. */
    private static function isOpaque(object $value): bool
    {
        return str_starts_with($value::class, 'Surus\\') || $value instanceof \Closure || $value instanceof \WeakMap
            || $value instanceof \WeakReference || $value instanceof \Generator || $value instanceof \Fiber
            || $value instanceof \UnitEnum || $value instanceof \Reflector || $value instanceof \Throwable;
    }

    private static function a(string $class): string
    {
        return (preg_match('/^[AEIOaeio]/', $class) === 1 ? 'an ' : 'a ') . $class;
    }
}
