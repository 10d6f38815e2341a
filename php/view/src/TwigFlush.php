<?php

declare(strict_types=1);

namespace Surus\View;

use Twig\Compiler;
use Twig\Extension\AbstractExtension;
use Twig\Node\Node;
use Twig\Token;
use Twig\TokenParser\AbstractTokenParser;

/**
 * Twig's `{% flush %}` for pages in pieces.
 *
 * @internal
 */
final class TwigFlush extends AbstractExtension
{
    public function getTokenParsers(): array
    {
        return [new class () extends AbstractTokenParser {
            public function parse(Token $token): Node
            {
                $this->parser->getStream()->expect(Token::BLOCK_END_TYPE);

                return new class ([], [], $token->getLine()) extends Node {
                    public function compile(Compiler $compiler): void
                    {
                        $compiler->addDebugInfo($this)->write('\\' . Pieces::class . "::flush();\n");
                    }
                };
            }

            public function getTag(): string
            {
                return 'flush';
            }
        }];
    }
}
