<?php

declare(strict_types=1);

namespace Surus;

use Psr\Container\ContainerInterface;
use Psr\EventDispatcher\EventDispatcherInterface;
use Psr\EventDispatcher\ListenerProviderInterface;
use Psr\Http\Client\ClientInterface;
use Psr\Log\LoggerInterface;
use Psr\SimpleCache\CacheInterface;
use Surus\Http\Request;
use Surus\Internal\Connections;
use Surus\Internal\Making;
use Surus\Internal\Origin;
use Surus\Internal\Recipe;

/**
 * Services by class: declared, from a PSR-11 container, or made with the services that their constructors need.
 *
 * A service is shared by all requests of a worker, unless it is scoped: declared as scoped, marked #[Scoped], or made
 * with a scoped service. Shared ones serve many requests at a time and must not hold a connection.
 */
final class Container implements ContainerInterface
{
    /* The default services for these interfaces. The cache is from surus/cache, which every server has. */
    private const OWN = [
        CacheInterface::class => Cache\SharedCache::class,
        ClientInterface::class => Psr\HttpClient::class,
        EventDispatcherInterface::class => Events\Dispatcher::class,
        ListenerProviderInterface::class => Events\Listeners::class,
        LoggerInterface::class => Log::class,
    ];

    /** @var array<string, Recipe> */
    private array $recipes = [];

    /** @var array<string, array{bool, string}> declared without a factory, constructors not read yet: scoped, place */
    private array $declared = [];

    /** @var array<string, string> where services were declared with a factory, or set */
    private array $places = [];

    /** @var array<string, mixed> */
    private array $shared = [];

    /** @var \WeakMap<Request, array<string, mixed>> */
    private \WeakMap $perRequest;

    /** @var \WeakMap<object, array<string, \WeakReference<Making>>> what is being made, by request, or for all: this container */
    private \WeakMap $making;

    private ?ContainerInterface $delegate = null;

    public function __construct()
    {
        $this->perRequest = new \WeakMap();
        $this->making = new \WeakMap();
        $this->recipes[Request::class] = new Recipe(static fn (): mixed => null, true);
        $this->set(self::class, $this);
        $this->set(ContainerInterface::class, $this);
    }

    /** Declares a service that exists already. */
    public function set(string $id, mixed $service): void
    {
        unset($this->declared[$id]);
        $this->places[$id] = Origin::caller();
        $this->shared[$id] = $service;
        $this->recipes[$id] = new Recipe(static fn (): mixed => $service, false);
    }

    /** @param ?\Closure(Container, ?Request): mixed $factory without one, the class's constructor */
    public function singleton(string $id, ?\Closure $factory = null): void
    {
        $this->declare($id, $factory, false);
    }

    /** @param ?\Closure(Container, ?Request): mixed $factory without one, the class's constructor */
    public function scoped(string $id, ?\Closure $factory = null): void
    {
        $this->declare($id, $factory, true);
    }

    /** Sets the container for services that are not declared here. */
    public function delegate(ContainerInterface $container): void
    {
        $this->delegate = $container;
        $this->set(ContainerInterface::class, $container);
    }

    /** @internal */
    public function hasDelegate(): bool
    {
        return $this->delegate !== null;
    }

    /** @internal adds the services of a mounted application; existing ones have precedence */
    public function absorb(Container $other): void
    {
        $here = $this->recipes + $this->declared;
        $this->declared += array_diff_key($other->declared, $here);
        $this->recipes += array_diff_key($other->recipes, $here);
        $this->shared += array_diff_key($other->shared, $here);
        $this->places += array_diff_key($other->places, $here);
    }

    /** Whether {@see Container::get()} would find it or make it. */
    public function has(string $id): bool
    {
        return $this->isDeclared($id) || isset(self::OWN[$id]) || Recipe::isMakeable($id);
    }

    /** Whether it is declared here or in the other container. */
    public function isDeclared(string $id): bool
    {
        return $this->isHere($id) || $this->delegate?->has($id);
    }

    /** @internal at boot, after all declarations: throws for a service that cannot be made */
    public function check(): void
    {
        foreach (array_keys($this->declared) as $id) {
            if (!$this->declared[$id][0]) {
                $this->refuse($id, Connections::ofClass($id), $this->declared[$id][1]);
            }
            $this->recipe($id);
        }
        foreach ($this->places as $id => $place) {
            if (array_key_exists($id, $this->shared)) {
                $this->refuse($id, $this->shared[$id] instanceof self ? null : Connections::of($this->shared[$id]), $place);
            } elseif (!$this->recipes[$id]->scoped) {
                $this->refuse($id, Connections::ofClass($id) ?? $this->ofFactory($id), $place);
            }
        }
    }

    /** The connection in the return type of its factory, if any. */
    private function ofFactory(string $id): ?string
    {
        $type = (new \ReflectionFunction($this->recipes[$id]->make))->getReturnType();

        return $type instanceof \ReflectionNamedType ? Connections::ofClass($type->getName()) : null;
    }

    /** Throws if a shared service is or holds a connection. */
    private function refuse(string $id, ?string $found, ?string $place = null): void
    {
        if ($found === null) {
            return;
        }
        $place ??= class_exists($id) ? Origin::of(new \ReflectionClass($id)) : 'unknown';
        $what = str_ends_with($found, " $id") ? 'is a connection' : "holds $found";
        throw new BootError("$place: the service $id $what, and all requests would share it, so that they would get each other's answers: "
            . 'declare it scoped(), or use a Surus\Pool (guide, page Databases)');
    }

    /** Whether each request has its own object. */
    public function isScoped(string $id): bool
    {
        return !$this->isDelegated($id) && $this->recipe($id)->scoped;
    }

    /**
     * The service; a scoped one needs its request.
     *
     * @template T of object
     *
     * @param string|class-string<T> $id
     *
     * @return ($id is class-string<T> ? T : mixed)
     */
    public function get(string $id, ?Request $request = null): mixed
    {
        if (array_key_exists($id, $this->shared)) {
            return $this->shared[$id];
        }
        if ($this->isDelegated($id)) {
            // That container decides what is shared.
            return $this->delegate?->get($id);
        }
        $recipe = $this->recipe($id);
        if (!$recipe->scoped) {
            return $this->make($id, $recipe, null);
        }
        if ($request === null) {
            throw new \LogicException("$id belongs to a request: a service that all requests share cannot have it");
        }
        if ($id === Request::class) {
            return $request;
        }
        $mine = $this->perRequest[$request] ?? [];
        if (array_key_exists($id, $mine)) {
            return $mine[$id];
        }

        return $this->make($id, $recipe, $request);
    }

    /** What is asked for while its factory waits, waits for that one: nobody gets another object. */
    private function make(string $id, Recipe $recipe, ?Request $request): mixed
    {
        $of = $request ?? $this;
        if (!Making::isPossible()) {
            return $this->makeNow($id, $recipe, $request);
        }
        $making = new Making();
        $own = \WeakReference::create($making);
        for (;;) {
            $other = $this->making[$of][$id] ?? null;
            $made = $request === null ? $this->shared : $this->perRequest[$request] ?? [];
            if (array_key_exists($id, $made)) {
                return $made[$id];
            }
            if ($other?->get()?->join($id)?->wait() === true) {
                continue;
            }
            // From here on no call is made that may let other code run before what is noted here.
            if (($this->making[$of][$id] ?? null) === $other) {
                $this->making[$of] = [$id => $own] + ($this->making[$of] ?? []);
                break;
            }
        }
        try {
            return $this->makeNow($id, $recipe, $request);
        } catch (\Throwable $error) {
            $making->fail($error);
            throw $error;
        } finally {
            unset($making); // which calls those who wait
        }
    }

    private function makeNow(string $id, Recipe $recipe, ?Request $request): mixed
    {
        $made = ($recipe->make)($this, $request);
        if ($request === null) {
            $this->refuse($id, Connections::of($made), $this->places[$id] ?? null);

            // Another request may have made it while this one waited.
            return array_key_exists($id, $this->shared) ? $this->shared[$id] : $this->shared[$id] = $made;
        }
        $mine = $this->perRequest[$request] ?? [];
        if (array_key_exists($id, $mine)) {
            return $mine[$id];
        }
        $this->perRequest[$request] = [$id => $made] + ($this->perRequest[$request] ?? []);

        return $made;
    }

    private function isDelegated(string $id): bool
    {
        return !$this->isHere($id) && $this->delegate !== null && $this->delegate->has($id);
    }

    private function isHere(string $id): bool
    {
        return isset($this->recipes[$id]) || isset($this->declared[$id]);
    }

    /** @param ?\Closure(Container, ?Request): mixed $factory */
    private function declare(string $id, ?\Closure $factory, bool $scoped): void
    {
        unset($this->recipes[$id], $this->declared[$id], $this->shared[$id]);
        $this->places[$id] = Origin::caller();
        if ($factory === null) {
            $this->declared[$id] = [$scoped, $this->places[$id]];
        } else {
            $this->recipes[$id] = new Recipe($factory, $scoped);
        }
    }

    private function recipe(string $id): Recipe
    {
        if (isset($this->recipes[$id])) {
            return $this->recipes[$id];
        }
        if (isset($this->declared[$id])) {
            [$scoped, $place] = $this->declared[$id];
            try {
                $this->recipes[$id] = Recipe::of($this, $id, $scoped);
            } catch (BootError | ServiceNotFound $error) {
                throw new BootError("$place: the service $id cannot be made: {$error->getMessage()}");
            }
            unset($this->declared[$id]);

            return $this->recipes[$id];
        }
        $own = self::OWN[$id] ?? null;

        return $this->recipes[$id] = $own === null
            ? Recipe::of($this, $id, null)
            : new Recipe(static fn (self $container): mixed => $container->get($own), false);
    }
}
