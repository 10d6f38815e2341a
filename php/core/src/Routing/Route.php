<?php

declare(strict_types=1);

namespace Surus\Routing;

use Surus\BootError;
use Surus\Internal\Declared;
use Surus\Internal\Inherited;

/** One route, whose name and conditions can be set after {@see \Surus\App::map()}. */
final class Route
{
    use Conditions;

    private string $name = '';

    /** @var list<string> */
    private array $headers = [];

    /** @var array<string, string> */
    private array $constraints = [];

    /**
     * @internal
     *
     * @param array<string> $methods
     */
    public function __construct(
        private readonly array $methods,
        private readonly string $pattern,
        private readonly mixed $handler,
        private readonly string $origin,
    ) {
    }

    /** The name, for {@see \Surus\App::url()}. */
    public function name(string $name): static
    {
        $this->name = $name;

        return $this;
    }

    /** Only for requests with this header, and with this value: in a list, one item must be equal. */
    public function header(string $name, ?string $value = null): static
    {
        if (strpbrk($name . $value, "\r\n") !== false) {
            throw new BootError("$this->origin: a header has one line");
        }
        $this->headers[] = $value === null ? $name : "$name: $value";

        return $this;
    }

    /** The constraint of a parameter: int, slug, uuid or a regular expression. */
    public function where(string $parameter, string $constraint): static
    {
        $this->constraints[$parameter] = $constraint;

        return $this;
    }

    /** @internal */
    public function declared(Inherited $from): Declared
    {
        $pattern = $from->prefix . ($this->pattern === '/' && $from->prefix !== '' ? '' : $this->pattern);
        $pattern = new Pattern($pattern === '' ? '/' : $pattern);
        foreach ($this->constraints as $parameter => $constraint) {
            $pattern = $pattern->constrained($parameter, $constraint)
                ?? throw new BootError("$this->origin: there is no parameter \"$parameter\" in \"$pattern\"");
        }
        $methods = array_map(strtoupper(...), $this->methods);

        return new Declared(
            array_values(array_unique($methods)),
            $pattern,
            $this->handler,
            $this->name === '' ? '' : $from->namePrefix . $this->name,
            $this->host === '' ? $from->host : $this->host,
            $this->headers,
            [...$from->middleware, ...$this->middleware],
            $this->timeout ?? $from->timeout,
            $this->origin,
        );
    }
}
