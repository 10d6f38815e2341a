<?php

declare(strict_types=1);

namespace Surus\Schema;

use Surus\Internal\Tokens;

/**
 * The place of a doc comment: names of classes are resolved as in the code there.
 *
 * @internal
 */
final class Scope
{
    /** @var array<string, list<array{line: int, name: string, uses: array<string, string>}>> namespaces by file */
    private static array $files = [];

    /** @param ?class-string $class the class named by `self` */
    private function __construct(
        public readonly ?string $class,
        private readonly string $file,
        private readonly int $line,
    ) {
    }

    /** @param \ReflectionClass<object>|\ReflectionFunctionAbstract $code */
    public static function of(\ReflectionClass|\ReflectionFunctionAbstract $code): self
    {
        $class = match (true) {
            $code instanceof \ReflectionClass => $code,
            $code instanceof \ReflectionMethod => $code->getDeclaringClass(),
            default => $code->getClosureScopeClass(),
        };

        return new self($class?->getName(), (string) $code->getFileName(), (int) $code->getStartLine());
    }

    /** The class or enum that a name refers to; null if there is none. */
    public function resolve(string $name): ?string
    {
        $names = [ltrim($name, '\\')];
        if (!str_starts_with($name, '\\') && is_file($this->file)) {
            $here = $this->here();
            [$first, $rest] = explode('\\', $name, 2) + [1 => null];
            $names = [$here['name'] === '' ? $name : $here['name'] . '\\' . $name, $name];
            $used = $here['uses'][strtolower($first)] ?? null;
            if ($used !== null) {
                array_unshift($names, $rest === null ? $used : "$used\\$rest");
            }
        }
        foreach ($names as $each) {
            if (class_exists($each) || interface_exists($each) || enum_exists($each)) {
                return $each;
            }
        }

        return null;
    }

    /** The namespace. */
    public function space(): string
    {
        return is_file($this->file) ? $this->here()['name'] : '';
    }

    /** @return array{line: int, name: string, uses: array<string, string>} */
    private function here(): array
    {
        $found = ['line' => 0, 'name' => '', 'uses' => []];
        foreach (self::$files[$this->file] ??= self::namespaces((string) file_get_contents($this->file)) as $each) {
            if ($each['line'] <= $this->line) {
                $found = $each;
            }
        }

        return $found;
    }

    /** @return list<array{line: int, name: string, uses: array<string, string>}> */
    private static function namespaces(string $source): array
    {
        $found = [['line' => 0, 'name' => '', 'uses' => []]];
        $tokens = array_values(array_filter(\PhpToken::tokenize($source), static fn (\PhpToken $token): bool => !$token->isIgnorable()));
        // `use` is an import only at the top level, or directly within the braces of a namespace.
        $depth = 0;
        $top = 0;
        foreach ($tokens as $i => $token) {
            $next = $tokens[$i + 1] ?? null;
            if ($token->is(T_NAMESPACE) && $next?->is([T_STRING, T_NAME_QUALIFIED, '{']) === true) {
                $name = $next->is('{') ? '' : $next->text;
                $top = $next->is('{') || ($tokens[$i + 2] ?? null)?->is('{') === true ? 1 : 0;
                $found[] = ['line' => $token->line, 'name' => $name, 'uses' => []];
            } elseif ($token->is(T_USE) && $depth === $top && $next?->is([T_STRING, T_NAME_QUALIFIED, T_NAME_FULLY_QUALIFIED]) === true) {
                $found[count($found) - 1]['uses'] += self::imports($tokens, $i + 1);
            }
            $depth += Tokens::depth($token);
        }

        return $found;
    }

    /**
     * `A\B`, `A\B as C`, `A\{B, C as D}`, separated by commas.
     *
     * @param list<\PhpToken> $tokens
     *
     * @return array<string, string> by alias, in lower case
     */
    private static function imports(array $tokens, int $at): array
    {
        $uses = [];
        $prefix = $name = $alias = '';
        for (; isset($tokens[$at]); $at++) {
            $token = $tokens[$at];
            if ($token->is([T_STRING, T_NAME_QUALIFIED, T_NAME_FULLY_QUALIFIED])) {
                $name = $prefix . ltrim($token->text, '\\');
                $alias = substr((string) strrchr('\\' . $name, '\\'), 1);
            } elseif ($token->is(T_AS)) {
                $alias = $tokens[++$at]->text ?? '';
            } elseif ($token->is('{')) {
                $prefix = $name . '\\';
                $name = '';
            } elseif ($token->is([',', ';', '}'])) {
                if ($name !== '') {
                    $uses[strtolower($alias)] = $name;
                    $name = '';
                }
                if ($token->is(';')) {
                    break;
                }
            }
        }

        return $uses;
    }
}
