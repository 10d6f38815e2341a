<?php

declare(strict_types=1);

final class Refused extends RuntimeException
{
}

function greet(string $name): string
{
    static $calls = 0;

    return sprintf('%s %d', $name, ++$calls);
}

function words(): Generator
{
    yield 'ok';
    yield ' and ';
    yield 'more';
}
