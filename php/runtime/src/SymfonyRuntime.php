<?php

declare(strict_types=1);

namespace Surus\Runtime;

use Symfony\Component\Console\Application;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpKernel\HttpKernelInterface;
use Symfony\Component\Runtime\RunnerInterface;
use Symfony\Component\Runtime\SymfonyRuntime as BaseRuntime;

/**
 * Serves Symfony applications in worker mode, with their `public/index.php` as it is.
 *
 * In this mode the server sets `APP_RUNTIME` to this class, unless the application's environment sets it.
 */
final class SymfonyRuntime extends BaseRuntime
{
    /** A kernel is booted once; whatever else can be run is run for each request. */
    public function getRunner(?object $application): RunnerInterface
    {
        if ($application instanceof HttpKernelInterface) {
            return new KernelRunner($application);
        }
        $runner = parent::getRunner($application);
        $isOwn = $application instanceof RunnerInterface || $application instanceof Application || $application instanceof Command;

        return $isOwn ? $runner : new RepeatedRunner($runner);
    }

    /** @throws \LogicException if the application wants a request while it boots, when there is none */
    protected function getArgument(\ReflectionParameter $parameter, ?string $type): mixed
    {
        if ($type === Request::class || ($type === 'array' && $parameter->name === 'request')) {
            throw new \LogicException(sprintf(
                'The application takes "%s $%s", but in worker mode it boots before there is a request: return a kernel, or serve it with --mode classic.',
                $type,
                $parameter->name,
            ));
        }

        return parent::getArgument($parameter, $type);
    }
}
