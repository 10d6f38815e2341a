<?php

declare(strict_types=1);

namespace Surus\Schema;

/**
 * The responses of a handler: from its return type, its doc comment and its #[Returns].
 *
 * @internal
 */
final class Responses
{
    public function __construct(private readonly TypeSchemas $types)
    {
    }

    /** @return array<int|string, array<string, mixed>> by status */
    public function of(\ReflectionFunctionAbstract $function): array
    {
        $scope = Scope::of($function);
        $responses = [];
        foreach (Attributes::all($function, Returns::class) as $returns) {
            $responses[$returns->status] = $this->declared($returns, $scope);
        }
        $type = PhpDoc::returned($function->getDocComment());
        $inferred = $type !== null ? $this->inferred($type, $scope) : $this->native($function->getReturnType(), $scope);
        // If a successful response is declared, the return type is ignored.
        $declared = array_filter(array_keys($responses), static fn (int $status) => $status >= 200 && $status < 300);
        $responses += $declared === [] ? $inferred : array_intersect_key($inferred, [204 => true]);
        ksort($responses);

        return $responses ?: ['default' => ['description' => 'A response.']];
    }

    /** @return array<string, mixed> */
    private function declared(Returns $returns, Scope $scope): array
    {
        $response = ['description' => $returns->description ?? ($returns->status < 400 ? 'Success.' : 'An error.')];
        if ($returns->type === null && $returns->mediaType === null) {
            return $response;
        }
        $media = $returns->mediaType ?? ($returns->type === 'string' ? 'text/html' : 'application/json');
        $content = ['schema' => (object) ($returns->type === null ? [] : $this->types->ofDoc($returns->type, $scope))];
        if ($returns->example !== null) {
            $content['example'] = $returns->example;
        }

        return $response + ['content' => [$media => $content]];
    }

    /** @return array<int|string, array<string, mixed>> */
    private function native(?\ReflectionType $type, Scope $scope): array
    {
        $types = $type instanceof \ReflectionUnionType ? $type->getTypes() : ($type === null ? [] : [$type]);
        $responses = [];
        foreach ($types as $each) {
            $name = $each instanceof \ReflectionNamedType ? $each->getName() : 'mixed';
            $responses += $this->inferred($name, $scope);
            if ($each->allowsNull() && $name !== 'mixed') {
                $responses += $this->inferred('null', $scope);
            }
        }

        return $responses;
    }

    /**
     * The response for a result of this type.
     *
     * @return array<int|string, array<string, mixed>>
     */
    private function inferred(string $type, Scope $scope): array
    {
        $content = static fn (string $media, array $schema): array => [200 => [
            'description' => 'Success.',
            'content' => [$media => ['schema' => (object) $schema]],
        ]];
        $class = ltrim($type, '\\');

        return match (true) {
            $type === 'null', $type === 'void' => [204 => ['description' => 'No content.']],
            $type === 'string', (bool) preg_match('/^(\\\\?Generator|iterable)\b/', $type) => $content('text/html', ['type' => 'string']),
            $type === 'int', $type === 'mixed', $type === 'never', $type === 'static', $type === 'self' => [],
            is_a($class, \Surus\Http\Response::class, true),
            is_a($class, 'Psr\Http\Message\ResponseInterface', true) => [],
            default => $content('application/json', $this->types->ofDoc($type, $scope)),
        };
    }
}
